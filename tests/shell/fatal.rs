//! What waiting does not mend is said at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use apibinding::api::Kind;
use apibinding::front::{Fault, Front, Rule, User};
use apibinding::shell::{Controller, Failure, Server, dump};
use apibinding::sim::Request;
use apibinding::snapshot::Layout;
use bytes::Bytes;
use kube::Client;
use serde_json::json;

use crate::stage::{Actor, DEADLINE, client, config, rest, until};
use crate::worlds::{End, World};

pub fn client_of(front: &Front, token: &str) -> Client {
    let mut config = config(front);
    config.auth_info.token = Some(token.to_owned().into());
    Client::try_from(config).unwrap()
}

pub fn user(name: &str) -> User {
    User { name: name.into(), token: format!("token of {name}"), allow: None }
}

async fn failure(front: &Front, client: Client, layout: Layout) -> Failure {
    let begun = Instant::now();
    let failure = Actor::start(Controller::new(client).layout(layout)).await.failure().await;
    assert!(begun.elapsed().as_secs() < 3, "{:?}", begun.elapsed());
    let wrote = front.count(|entry| !["list", "watch"].contains(&entry.ask.verb));
    assert_eq!(wrote, 0);
    failure
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_may_not_list_is_told() {
    let world = World::bootstrap();
    let rule: Rule = serde_json::from_value(json!({
        "apiGroups": ["*"],
        "resources": ["apibindings", "logicalclusters", "apiexports", "apiresourceschemas", "apiconversions"],
        "verbs": ["list", "watch"],
    }))
    .unwrap();
    let front = world.front_with(apibinding::front::Settings { allow: Some(vec![rule]), ..world.settings() });
    let failure = failure(&front, client(&front), world.layout).await;
    assert!(
        matches!(&failure, Failure::Forbidden { what, .. } if what.contains("customresourcedefinitions")),
        "{failure}"
    );
    assert!(failure.to_string().contains("shard-base"), "{failure}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_unknown_is_told() {
    let world = World::bootstrap();
    let settings = apibinding::front::Settings { users: Some(vec![user("admin")]), ..world.settings() };
    let front = world.front_with(settings);
    let unknown = failure(&front, client_of(&front, "nonsense"), world.layout).await;
    assert!(matches!(unknown, Failure::Unauthorized { .. }), "{unknown}");
    // Without any credentials a kcp says 403.
    let nobody = failure(&front, client(&front), world.layout).await;
    assert!(matches!(nobody, Failure::Forbidden { .. }), "{nobody}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_that_is_not_served_is_told() {
    let world = World::bootstrap();
    let front = world.front();
    front.intercept(|ask| {
        let is_export = ask.kind == Some(Kind::ApiExport);
        is_export.then(|| Fault::status(404, "NotFound", "the server could not find the requested resource", None))
    });
    let failure = failure(&front, client(&front), world.layout).await;
    assert!(matches!(failure, Failure::NotServed { kind: Kind::ApiExport, .. }), "{failure}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_wrong_layout_is_told() {
    for (there, asked) in [(Layout::Split, Layout::Single), (Layout::Single, Layout::Split)] {
        let world = World::recorded(there);
        let front = world.front();
        let failure = failure(&front, client(&front), asked).await;
        assert!(
            matches!(&failure, Failure::Layout { found, wanted, .. } if (*found, *wanted) == (there, asked)),
            "{failure}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_that_run_out_are_read_again() {
    let world = World::bootstrap();
    let users = Some(vec![user("old"), user("new")]);
    let front = Arc::new(world.front_with(apibinding::front::Settings { users, ..world.settings() }));
    let renewals = Arc::new(AtomicUsize::new(0));
    let (count, new) = (renewals.clone(), client_of(&front, "token of new"));
    let server = Server::renewed_by(client_of(&front, "token of old"), move || {
        count.fetch_add(1, Ordering::Relaxed);
        let new = new.clone();
        async move { Ok(new) }
    });
    let actor = Actor::start(Controller::new(server).layout(world.layout)).await;
    until("a beginning", || front.count(|entry| entry.ask.verb == "patch") > 2).await;
    front.intercept(|ask| (ask.user == "old").then(|| Fault::status(401, "Unauthorized", "Unauthorized", None)));
    rest(&front, &[&actor]).await;
    End::of_front(&front).assert_is(&world.simulated(), "renewed");
    front.end_watches();
    let note = json!({"metadata": {"annotations": {"example.com/note": "x"}}});
    front.with(|kcp| kcp.handle(Request::merge(Kind::ApiBinding, "root", "tenancy.kcp.io", note))).unwrap();
    rest(&front, &[&actor]).await;
    // Not once for each request that was refused.
    assert!((1..=3).contains(&renewals.load(Ordering::Relaxed)), "{renewals:?}");
    actor.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_whose_pages_never_end_is_told() {
    let front = World::example().front();
    let page = r#"{"kind": "LogicalClusterList", "metadata": {"resourceVersion": "5", "continue": "x"}, "items": []}"#;
    front.intercept(move |ask| (ask.verb == "list").then(|| Fault::Answer(http::Response::new(Bytes::from(page)))));
    let ended = dump(&Server::from(client(&front)), None, DEADLINE).await.unwrap_err().to_string();
    assert!(ended.contains("one page leads to itself") && ended.contains("logicalclusters"), "{ended}");
}
