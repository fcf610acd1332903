use crate::apply::equals_snapshot;
use crate::support::{admin, as_role, database, role, shape};
use queen_pg::FailureClass;
use queen_schema::{ApplyOptions, SchemaError, apply};

fn granting(roles: &[&str]) -> ApplyOptions {
    ApplyOptions {
        grant_roles: roles.iter().map(|&role| role.to_owned()).collect(),
        ..ApplyOptions::default()
    }
}

#[tokio::test]
async fn a_granted_role_serves_and_boots_without_owning_anything() {
    let pool = database().await;
    let app = role(&pool).await;
    apply(&pool, &granting(&[&app])).await.unwrap();

    let serving = as_role(&pool, &app);
    assert_eq!(apply(&serving, &ApplyOptions::default()).await.unwrap().statements_run, 0);
    // Also when its configuration names itself.
    assert_eq!(apply(&serving, &granting(&[&app])).await.unwrap().statements_run, 0);
    let mut conn = serving.get().await.unwrap();
    conn.batch(
        "INSERT INTO queen.queues (name) VALUES ('q'); UPDATE queen.queues SET priority = 1; \
         DELETE FROM queen.queues",
    )
    .await
    .unwrap();
    let refused = conn.batch("CREATE TABLE queen.mine (i int)").await.unwrap_err();
    assert_eq!(refused.sqlstate(), Some("42501"));
    assert_eq!(conn.batch("TRUNCATE queen.queues").await.unwrap_err().sqlstate(), Some("42501"));

    // Default privileges: what the owner makes later is usable at once.
    admin(&pool)
        .await
        .batch("CREATE TABLE queen.later (i int); CREATE TABLE queen_streams.later (i int)")
        .await
        .unwrap();
    conn.batch("INSERT INTO queen.later VALUES (1); DELETE FROM queen_streams.later").await.unwrap();
}

#[tokio::test]
async fn lost_grants_are_healed() {
    let pool = database().await;
    let app = role(&pool).await;
    let options = granting(&[&app]);
    apply(&pool, &options).await.unwrap();
    let mut admin = admin(&pool).await;
    let sql = "SELECT count(*) FROM pg_tables WHERE schemaname = 'queen'";
    let tables: i64 = admin.query(sql, &[]).await.unwrap()[0].get(0);
    let tables = usize::try_from(tables).unwrap();
    for (damage, statements) in [
        (format!("REVOKE USAGE ON SCHEMA queen FROM {app}"), 1),
        (format!("REVOKE INSERT ON queen.log_segments FROM {app}"), 1),
        (format!("REVOKE ALL ON ALL TABLES IN SCHEMA queen FROM {app}"), tables),
        (format!("ALTER DEFAULT PRIVILEGES IN SCHEMA queen_streams REVOKE SELECT ON TABLES FROM {app}"), 1),
    ] {
        admin.batch(&damage).await.unwrap();
        assert_eq!(apply(&pool, &options).await.unwrap().statements_run, statements, "{damage}");
        assert_eq!(apply(&pool, &options).await.unwrap().statements_run, 0, "{damage}");
    }
    as_role(&pool, &app).get().await.unwrap().batch("SELECT FROM queen.log_segments").await.unwrap();
}

#[tokio::test]
async fn a_role_with_an_odd_name_is_quoted() {
    let pool = database().await;
    let odd = r#"Ärger "x"; DROP"#;
    admin(&pool).await.batch(r#"CREATE ROLE "Ärger ""x""; DROP" LOGIN"#).await.unwrap();
    apply(&pool, &granting(&[odd])).await.unwrap();
    assert_eq!(apply(&as_role(&pool, odd), &ApplyOptions::default()).await.unwrap().statements_run, 0);
}

#[tokio::test]
async fn an_unknown_role_stops_the_apply_before_any_ddl() {
    let pool = database().await;
    let error = apply(&pool, &granting(&["ghost"])).await.unwrap_err();
    assert!(matches!(&error, SchemaError::UnknownRole(role) if role == "ghost"), "{error}");
    assert_eq!(shape(&pool).await, "\n");
}

#[tokio::test]
async fn a_role_that_may_not_create_is_told_so_before_any_ddl() {
    let pool = database().await;
    let app = role(&pool).await;
    let error = apply(&as_role(&pool, &app), &ApplyOptions::default()).await.unwrap_err();
    assert!(matches!(error, SchemaError::Rights(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains(&app) && text.contains("GRANT CREATE ON DATABASE"), "{text}");
    assert_eq!(error.class(), FailureClass::Config);
}

#[tokio::test]
async fn a_plain_role_with_create_on_the_database_owns_the_whole_schema() {
    let pool = database().await;
    let app = role(&pool).await;
    let database = &pool.options().database;
    admin(&pool).await.batch(&format!("GRANT CREATE ON DATABASE {database} TO {app}")).await.unwrap();
    let serving = as_role(&pool, &app);
    apply(&serving, &ApplyOptions::default()).await.unwrap();
    equals_snapshot(&shape(&pool).await);
    assert_eq!(apply(&serving, &ApplyOptions::default()).await.unwrap().statements_run, 0);
}

#[tokio::test]
async fn objects_of_another_owner_are_explained() {
    let pool = database().await;
    let app = role(&pool).await;
    apply(&pool, &ApplyOptions::default()).await.unwrap();
    let owner = pool.options().user.clone();

    // Nothing granted: the schema itself.
    let serving = as_role(&pool, &app);
    let explained = |text: String| {
        for part in [app.as_str(), owner.as_str(), "QUEEN_DB_ROLE", "REASSIGN OWNED", "pg_restore --role"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    };
    let error = apply(&serving, &ApplyOptions::default()).await.unwrap_err();
    assert!(matches!(&error, SchemaError::Rights(text) if text.contains("may not use schema")), "{error}");
    explained(error.to_string());

    // The schema, but not its tables.
    let mut admin = admin(&pool).await;
    admin.batch(&format!("GRANT USAGE ON SCHEMA queen, queen_streams TO {app}")).await.unwrap();
    let error = apply(&serving, &ApplyOptions::default()).await.unwrap_err();
    assert!(
        matches!(&error, SchemaError::Rights(text) if text.contains("may not read and write")),
        "{error}"
    );
    explained(error.to_string());

    // Everything that serving takes, but something is missing that only the owner can make.
    admin
        .batch(&format!(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA queen TO {app}; \
             DROP INDEX queen.queues_tenant_name_uk"
        ))
        .await
        .unwrap();
    let error = apply(&serving, &ApplyOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("index queen.queues_tenant_name_uk is missing"), "{error}");
    explained(error.to_string());

    // A member of the owner may do it.
    let member = role(&pool).await;
    admin.batch(&format!("GRANT {owner} TO {member}")).await.unwrap();
    assert_eq!(apply(&as_role(&pool, &member), &ApplyOptions::default()).await.unwrap().statements_run, 1);
    assert_eq!(apply(&serving, &ApplyOptions::default()).await.unwrap().statements_run, 0);
}
