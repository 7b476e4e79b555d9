//! Who is connected.

use strandline_console::Scope;

use crate::Running;

#[tokio::test]
async fn clients_are_listed_as_json() {
    let console = Running::start(Scope::Everything, 8).await;
    let answer = console.get("/v1/clients").await;
    assert_eq!(answer.code, 200);
    assert!(answer.head.contains("content-type: application/json"), "{answer:?}");
    assert_eq!(
        answer.body,
        concat!(
            r#"[{"client_id":"app-1","software_name":"librdkafka","software_version":"2.0.2","#,
            r#""address":"10.0.0.7:5","reached":"[::1]:9092","told":"kafka:9092","#,
            r#""connected_at":"2023-11-14T22:13:20.5Z","requests":12,"last_request":null,"#,
            r#""last_request_at":null,"connected":true,"stranded":true}]"#,
        )
    );
    console.stop().await;
}

#[tokio::test]
async fn beyond_loopback_nobody_learns_who_is_connected() {
    let console = Running::start(Scope::HealthOnly, 8).await;
    assert_eq!(console.get("/v1/clients").await.code, 404);
    console.stop().await;
}
