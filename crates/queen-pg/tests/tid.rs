//! Addresses of rows go to the server and come back, alone and in arrays, and find their rows.
#![allow(clippy::unwrap_used)]

mod support;

use queen_pg::{Pool, Tid};
use support::{admin, database};

#[tokio::test]
async fn addresses_travel_as_the_server_writes_them() {
    let mut conn = admin().await;
    for tid in [
        Tid { block: 0, offset: 1 },
        Tid { block: 70_000, offset: 291 },
        Tid { block: u32::MAX, offset: u16::MAX },
    ] {
        let rows = conn.query("SELECT $1::tid, $1::tid::text", &[&tid]).await.unwrap();
        assert_eq!(rows[0].get::<_, Tid>(0), tid);
        assert_eq!(rows[0].get::<_, &str>(1), tid.to_string());
    }
    let tids = vec![Some(Tid { block: 3, offset: 4 }), None];
    let none: Option<Tid> = None;
    let rows = conn.query("SELECT $1::tid[], $2::tid", &[&tids, &none]).await.unwrap();
    assert_eq!(rows[0].get::<_, Vec<Option<Tid>>>(0), tids);
    assert_eq!(rows[0].get::<_, Option<Tid>>(1), None);
}

#[tokio::test]
async fn an_address_finds_its_row_until_the_row_moves() {
    let mut conn = Pool::new(database().await).unwrap().get().await.unwrap();
    conn.batch("CREATE TABLE public.t (id int4, n int4); INSERT INTO public.t VALUES (1, 0), (2, 0), (3, 0)")
        .await
        .unwrap();
    let rows = conn.query("SELECT ctid FROM public.t ORDER BY id", &[]).await.unwrap();
    let old: Vec<Tid> = rows.iter().map(|row| row.get(0)).collect();
    const FIND: &str =
        "SELECT t.id FROM unnest($1::tid[]) AS i (at) JOIN public.t t ON t.ctid = i.at ORDER BY t.id";
    let ids = |rows: Vec<queen_pg::Row>| rows.iter().map(|row| row.get(0)).collect::<Vec<i32>>();
    assert_eq!(ids(conn.query(FIND, &[&old]).await.unwrap()), [1, 2, 3]);

    let rows = conn
        .query("UPDATE public.t SET n = 1 WHERE ctid = ANY ($1::tid[]) AND id = 2 RETURNING ctid", &[&old])
        .await
        .unwrap();
    let new: Tid = rows[0].get(0);
    assert_eq!(ids(conn.query(FIND, &[&old]).await.unwrap()), [1, 3]);
    assert_eq!(ids(conn.query(FIND, &[&vec![new]]).await.unwrap()), [2]);
}
