//! `apibinding run`, `dump` and `--live`: what talks to a server.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use apibinding::front::{Front, Rule, Settings, User};
use apibinding::sim::Kcp;
use apibinding::snapshot::{Layout, Origin};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::run::{Folder, command, run};

const WORLD: &str = "examples/world.yaml";

/// A server with the world of the example in it, and the runtime that it runs in.
fn serve(settings: Settings) -> (Runtime, Front) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&std::fs::read_to_string(WORLD).unwrap()).unwrap();
    let mut kcp = Kcp::new(1);
    kcp.load(Origin::Local, documents);
    let settings = Settings { layout: Layout::Split, establishing: Duration::ZERO, ..settings };
    let front = runtime.block_on(async { Front::serve(kcp, settings) }).unwrap();
    (runtime, front)
}

fn user(allow: Option<Vec<Rule>>) -> Option<Vec<User>> {
    Some(vec![User { name: "somebody".into(), token: "right".into(), allow }])
}

#[test]
fn the_example_comes_to_rest_on_an_embedded_kcp() {
    let played = run(["run", "--embedded", WORLD, "--establishing", "0s"]);
    assert_eq!((played.code, &*played.err), (0, ""), "{}", played.out);
    for (binding, phase) in [("dairy", "Bound"), ("poultry", "Bound"), ("waterfowl", "Binding"), ("orchard", "Binding")]
    {
        let line = played.out.lines().rfind(|line| line.contains(&format!("root:meadow/{binding}"))).unwrap();
        assert!(line.split_whitespace().any(|word| word == phase), "{line}");
    }
    let last = played.out.lines().last().unwrap();
    assert!(last.starts_with("4 bindings: 2 Binding, 2 Bound, after "), "{last}");
}

#[cfg(unix)]
#[test]
fn an_embedded_kcp_stays_and_stops_when_told_to() {
    let mut child = command(["run", "--embedded", WORLD, "--establishing", "0s", "--stay"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let url = lines.next().unwrap();
    assert!(url.contains("http://127.0.0.1:"), "{url}");
    let kubeconfig = lines.next().unwrap().trim().strip_prefix("export KUBECONFIG=").unwrap().to_owned();
    let config: Value = serde_json::from_str(&std::fs::read_to_string(&kubeconfig).unwrap()).unwrap();
    assert_eq!(config["current-context"], "root:meadow");
    let dumped = run(["dump", "--kubeconfig", &kubeconfig]);
    assert!(dumped.out.contains("waterfowl"), "{}{}", dumped.out, dumped.err);

    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").arg(&pid).status().unwrap().success());
    assert!(lines.last().unwrap().starts_with("4 bindings: "));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!std::path::Path::new(&kubeconfig).exists());
}

#[test]
fn a_dump_says_what_the_server_has() {
    let (_runtime, front) = serve(Settings::default());
    let folder = Folder::new("dump");
    let kubeconfig = folder.write("kubeconfig", &front.kubeconfig());
    let file = |name: &str| format!("{}/{name}", folder.path());
    let (local, global) = (file("local.yaml"), file("global.yaml"));
    let dumped = run(["dump", "--kubeconfig", &kubeconfig, "-f", &local, "--global", &global]);
    assert_eq!((dumped.code, &*dumped.out, &*dumped.err), (0, "", ""));
    assert!(!std::fs::read_to_string(&local).unwrap().contains("managedFields"));

    let now = "--now=2026-06-01T12:00:10Z";
    let of_files = run(["plan", now, "-f", &local, "--global", &global]);
    let live = run(["plan", now, "--live", "--kubeconfig", &kubeconfig]);
    assert_eq!((of_files.code, &*of_files.err), (2, ""), "{}", of_files.out);
    assert_eq!((live.code, live.out), (of_files.code, of_files.out));
    let why = run(["explain", "--live", "--server", &front.url(), "root:meadow/waterfowl"]);
    assert!(why.code == 2 && why.out.contains("held by APIBinding `poultry`"), "{}{}", why.out, why.err);

    let json = run(["dump", "--kubeconfig", &kubeconfig, "-o", "json", "--cache-server", "none"]);
    let kinds: Vec<Value> =
        json.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].clone()).collect();
    assert_eq!(kinds.len(), 6, "{kinds:?}");
}

#[test]
fn what_waiting_does_not_mend_is_said_at_once() {
    let forbidden: Rule =
        serde_json::from_str(r#"{"apiGroups": ["*"], "resources": ["leases"], "verbs": ["*"]}"#).unwrap();
    let folder = Folder::new("fatal");
    let (_one, front) = serve(Settings { users: user(Some(vec![forbidden])), ..Settings::default() });
    for (token, told) in [("wrong", "does not know who we are"), ("right", "does not let us do that")] {
        let token = folder.write(token, token);
        let ended = run(["run", "--server", &front.url(), "--token-file", &token]);
        assert!(ended.code == 1 && ended.err.contains(told), "{}", ended.err);
        assert!(ended.err.lines().last().unwrap().starts_with("error: "), "{}", ended.err);
    }
    let (_two, front) = serve(Settings::default());
    let ended = run(["run", "--server", &front.url()]);
    assert!(ended.code == 1 && ended.err.contains("start it with --layout split"), "{}", ended.err);
}

#[test]
fn ports_that_are_taken_are_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let (port, metrics) = (address.port().to_string(), address.to_string());
    let served = run(["run", "--embedded", WORLD, "--port", &port]);
    assert!(served.code == 1 && served.err.contains(&format!("port {port}")), "{}", served.err);
    let watched = run(["run", "--server", "http://127.0.0.1:1", "--metrics-addr", &metrics]);
    assert!(watched.code == 1 && watched.err.contains(&metrics), "{}", watched.err);
}

#[test]
fn wrong_ways_to_a_server_are_told() {
    let folder = Folder::new("ways");
    let file = folder.write("broken", "clusters: 7");
    for (args, told) in [
        (&["run", "--kubeconfig", "/nowhere"][..], "/nowhere"),
        (&["run", "--kubeconfig", &file], "broken"),
        (&["run", "--server", "kcp.example"], "https://"),
        (&["run", "--server", "http://127.0.0.1:1", "--token-file", "/nowhere/token"], "/nowhere/token"),
        (&["plan", "-f", WORLD, "--context", "a"], "--live"),
        (&["dump", "--server", "http://127.0.0.1:1"], "no answer that is of use"),
        (&["dump", "--server", "http://127.0.0.1:1", "--kubeconfig", "a"], "cannot be used with"),
    ] {
        let ended = run(args);
        assert!(ended.code == 1 && ended.err.contains(told), "{args:?}: {}", ended.err);
    }
}
