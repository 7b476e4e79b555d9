//! Health: codes, words, one check at a time, and what is served where.

use strandline_console::Scope;

use crate::{Running, check};

#[tokio::test]
async fn a_broker_that_is_well_says_so() {
    let console = Running::start(Scope::Everything, 8).await;
    for (path, body) in [("/livez", "alive\n"), ("/healthz", "alive\n"), ("/readyz", "ready\n")] {
        let answer = console.get(path).await;
        assert_eq!((answer.code, answer.body.as_str()), (200, body), "{path}");
        assert!(answer.head.contains("cache-control: no-store"), "{answer:?}");
    }
    console.stop().await;
}

#[tokio::test]
async fn a_failing_check_means_not_ready_but_alive() {
    let console = Running::start(Scope::Everything, 8).await;
    *console.told.ready.lock() = vec![
        check("listeners", true, "2 bound"),
        check("recovery", false, "61 %, 480 of 1,204 partitions"),
        check("disk", false, "below the floor"),
    ];
    assert_eq!(console.get("/livez").await.code, 200);
    let answer = console.get("/readyz").await;
    assert_eq!((answer.code, answer.body.as_str()), (503, "not_ready: recovery, disk\n"));

    for path in ["/readyz?verbose", "/readyz?verbose=1"] {
        let answer = console.get(path).await;
        assert_eq!(answer.code, 503);
        assert!(answer.head.contains("content-type: application/json"), "{answer:?}");
        let expected = concat!(
            r#"{"status":"not_ready","checks":["#,
            r#"{"name":"listeners","ok":true,"detail":"2 bound"},"#,
            r#"{"name":"recovery","ok":false,"detail":"61 %, 480 of 1,204 partitions"},"#,
            r#"{"name":"disk","ok":false,"detail":"below the floor"}]}"#,
        );
        assert_eq!(answer.body, expected);
    }
    console.stop().await;
}

#[tokio::test]
async fn one_check_can_be_asked_for() {
    let console = Running::start(Scope::Everything, 8).await;
    *console.told.ready.lock() = vec![check("listeners", true, ""), check("disk", false, "")];
    for (path, code) in [
        ("/readyz?check=listeners", 200),
        ("/readyz?check=disk", 503),
        ("/readyz?check=nonsense", 404),
        ("/livez?check=runtime", 200),
        ("/livez?check=disk", 404),
    ] {
        assert_eq!(console.get(path).await.code, code, "{path}");
    }
    let answer = console.get("/readyz?check=disk&verbose").await;
    let expected = r#"{"status":"not_ready","checks":[{"name":"disk","ok":false,"detail":""}]}"#;
    assert_eq!(answer.body, expected);
    let answer = console.get("/readyz?check=nonsense").await;
    assert_eq!(answer.body, "no such check. known: listeners, disk\n");
    console.stop().await;
}

#[tokio::test]
async fn beyond_loopback_only_health_is_served() {
    let console = Running::start(Scope::HealthOnly, 8).await;
    assert_eq!(console.get("/readyz").await.code, 200);
    assert_eq!(console.get("/livez").await.code, 200);
    let answer = console.get("/metrics").await;
    assert_eq!((answer.code, answer.body.as_str()), (404, "nothing here\n"));
    console.stop().await;
}

#[tokio::test]
async fn other_paths_and_methods_are_refused() {
    let console = Running::start(Scope::Everything, 8).await;
    assert_eq!(console.get("/").await.code, 404);
    assert_eq!(console.get("/readyz/").await.code, 404);
    let head = "HEAD /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let answer = console.send(head).await;
    assert_eq!((answer.code, answer.body.as_str()), (200, ""));
    let post = "POST /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(console.send(post).await.code, 405);
    console.stop().await;
}

#[tokio::test]
async fn a_connection_serves_several_requests() {
    let console = Running::start(Scope::Everything, 8).await;
    let pipelined = concat!(
        "GET /livez HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    );
    let answer = console.send(pipelined).await;
    assert_eq!(answer.code, 200);
    assert!(answer.body.starts_with("alive\n"), "{answer:?}");
    assert!(answer.body.ends_with("ready\n"), "{answer:?}");
    console.stop().await;
}
