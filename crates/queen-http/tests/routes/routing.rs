use crate::edge::Edge;

#[tokio::test]
async fn unknown_paths_and_methods() {
    let edge = Edge::start().await;
    for (method, path) in
        [("GET", "/api/v1/nothing"), ("POST", "/"), ("GET", "/"), ("DELETE", "/api/v1/queues/q/clear")]
    {
        let answer = edge.call(method, path, "").await;
        assert_eq!(answer.refusal(404), "Not Found");
        assert_eq!(answer.json()["code"], "no_such_route");
    }
    let answer = edge.call("PUT", "/api/v1/resources/queues/q", "").await;
    assert_eq!(answer.refusal(405), "method not allowed");
    assert_eq!(answer.json()["code"], "method_not_allowed");
    assert_eq!(answer.header("allow"), Some("GET,HEAD,DELETE"));
    let answer = edge.get("/api/v1/pop/queue/%ff%fe").await;
    assert_eq!((answer.status, answer.header("content-type")), (400, Some("text/plain; charset=utf-8")));
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let edge = Edge::start().await;
    let get = edge.get("/status").await;
    let head = edge.call("HEAD", "/status", "").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), get.header("content-length"));
    assert_eq!(head.header("content-type"), get.header("content-type"));
}
