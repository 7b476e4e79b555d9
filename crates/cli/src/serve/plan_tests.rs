use strandline_model::config::FsyncPolicy;

use super::*;

fn plan(options: ServeOptions, contents: &str) -> Result<Plan, Failure> {
    let file = SourceFile { path: "f".to_owned(), contents: contents.to_owned() };
    Plan::from_sources(options, Some(file), Vec::new())
}

fn listeners(plan: &Plan) -> (String, String) {
    let text = |listeners: &[Listener]| {
        listeners.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    };
    (text(&plan.config.listeners), text(&plan.config.http_listeners))
}

#[test]
fn an_empty_command_line_serves_this_machine_from_a_folder_here() {
    let plan = plan(ServeOptions::default(), "").expect("a plan");
    assert_eq!(
        listeners(&plan),
        ("PLAINTEXT://localhost:9092".to_owned(), "HTTP://localhost:9644".to_owned())
    );
    assert_eq!(plan.storage, Storage::Folder(PathBuf::from("./strandline-data")));
    assert_eq!(plan.config.storage_file_fsync, FsyncPolicy::Commit);
    assert!(!plan.is_open_to_others());
    assert!(plan.settings.notices().is_empty());
}

#[test]
fn ports_and_addresses_follow_the_flags() {
    for (bind, port, http, kafka_is, http_is) in [
        (None, Some(0), Some(0), "PLAINTEXT://localhost:0", "HTTP://localhost:0"),
        (Some("0.0.0.0"), None, None, "PLAINTEXT://0.0.0.0:9092", "HTTP://0.0.0.0:9644"),
        (Some("::1"), Some(1), None, "PLAINTEXT://[::1]:1", "HTTP://[::1]:9644"),
        (Some("[::1]"), None, Some(2), "PLAINTEXT://[::1]:9092", "HTTP://[::1]:2"),
    ] {
        let bind = bind.map(str::to_owned);
        let options = ServeOptions { bind, port, http, ..ServeOptions::default() };
        let plan = plan(options, "").expect("a plan");
        assert_eq!(listeners(&plan), (kafka_is.to_owned(), http_is.to_owned()));
    }
}

#[test]
fn the_port_flag_moves_the_listener_of_the_file() {
    let options = ServeOptions { port: Some(7), http: Some(8), ..ServeOptions::default() };
    let plan = plan(
        options,
        "listeners=INSIDE://10.0.0.7:9092,CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER\n\
         listener.security.protocol.map=INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
         http.listeners=http://127.0.0.1:1",
    )
    .expect("a plan");
    assert_eq!(
        listeners(&plan),
        ("INSIDE://10.0.0.7:7".to_owned(), "HTTP://127.0.0.1:8".to_owned())
    );
    assert!(plan.is_open_to_others());
}

#[test]
fn the_port_flag_does_not_choose_between_listeners() {
    let options = ServeOptions { port: Some(7), ..ServeOptions::default() };
    let failure = plan(
        options,
        "listeners=A://:1,B://:2\nlistener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT",
    )
    .expect_err("two listeners");
    assert_eq!(failure.exit, Exit::Usage);
    assert!(failure.to_string().contains("--port needs one listener"), "{failure}");
}

#[test]
fn ephemeral_keeps_everything_in_memory() {
    let options = ServeOptions { ephemeral: true, ..ServeOptions::default() };
    assert_eq!(plan(options, "").expect("a plan").storage, Storage::Memory);
}

#[test]
fn the_folder_is_the_flags_then_ours_then_kafkas() {
    let folder = |data: Option<&str>, contents: &str| {
        let options = ServeOptions { data: data.map(str::to_owned), ..ServeOptions::default() };
        plan(options, contents).expect("a plan").storage.to_string()
    };
    assert_eq!(folder(Some("/flag"), "data.dir=/ours\nlog.dirs=/kafka"), "/flag");
    assert_eq!(folder(None, "data.dir=/ours\nlog.dirs=/kafka"), "/ours");
    assert_eq!(folder(None, "log.dirs=/kafka\nlog.dir=/old"), "/kafka");
    assert_eq!(folder(None, "log.dir=/old"), "/old");
}

#[test]
fn several_faults_are_several_errors() {
    let failure = plan(ServeOptions::default(), "a.b.c.d.e=1\nnode.id=x").expect_err("faults");
    assert_eq!(failure.exit, Exit::Usage);
    assert_eq!(
        failure.to_string(),
        "error: f:1:1: unknown key \"a.b.c.d.e\"\n\
         \x20 1 | a.b.c.d.e=1\n\
         \x20   | ^ strandline config reference lists every key\n\
         error: f:2:9: invalid value \"x\" for node.id\n\
         \x20 2 | node.id=x\n\
         \x20   |         ^ not a number of type INT"
    );
}

#[test]
fn a_missing_file_is_a_usage_error() {
    let options =
        ServeOptions { config: Some("/nonexistent/x".to_owned()), ..ServeOptions::default() };
    let failure = Plan::make(options, std::iter::empty()).expect_err("no file");
    assert_eq!(failure.exit, Exit::Usage);
    assert!(failure.message.starts_with("cannot read /nonexistent/x:"), "{failure}");
}
