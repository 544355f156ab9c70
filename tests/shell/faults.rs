//! What goes wrong between the two, each alone and all of it at once: the end is the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use apibinding::api::{BindingKey, Kind};
use apibinding::front::{Ask, Fault, Front};
use apibinding::queue;
use apibinding::shell::Controller;
use apibinding::sim::{Builder, Chance, Request};
use apibinding::snapshot::{Layout, Origin};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::referee::Referee;
use crate::stage::{Actor, assert_nothing_left, assert_quiet, client, rest, seed, until};
use crate::worlds::{End, World};

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// A watch is cut in the middle of a line.
    CutWatch,
    /// The connection is cut before anything is done.
    Cut,
    /// The answer is lost.
    Lose,
    /// Half of the answer comes.
    Half,
    /// Somebody else writes the object first.
    Race,
    /// What happened is forgotten.
    Gone,
    TooMany,
    Internal,
    Unavailable,
    /// The answer comes too late.
    Late,
    /// What is asked is done too late.
    Slow,
}

impl Flaw {
    const ALL: [Self; 11] = [
        Self::CutWatch,
        Self::Cut,
        Self::Lose,
        Self::Half,
        Self::Race,
        Self::Gone,
        Self::TooMany,
        Self::Internal,
        Self::Unavailable,
        Self::Late,
        Self::Slow,
    ];

    /// What it makes of a request, if it can strike it.
    fn strike(self, ask: &Ask, chance: &mut Chance, front: &Front) -> Option<Fault> {
        let is_watch = ask.verb == "watch";
        match self {
            Self::CutWatch => is_watch.then(|| Fault::CutWatch { after: chance.below(4) as usize }),
            Self::Cut => Some(Fault::Cut),
            Self::Lose => Some(Fault::Lose),
            Self::Half => (!is_watch).then_some(Fault::Half),
            Self::Race => {
                let kind = ask.kind.filter(|_| ask.verb == "patch")?;
                let number = chance.any() % 1000;
                let note = json!({"metadata": {"annotations": {"example.com/note": number.to_string()}}});
                let request = Request::merge(kind, ask.cluster.as_str(), ask.name.clone(), note);
                front.with(|kcp| kcp.handle(request.managed_by("racer"))).unwrap();
                None
            }
            Self::Gone => ["watch", "list"].contains(&ask.verb).then(|| Fault::status(410, "Expired", "too old", None)),
            Self::TooMany => Some(Fault::status(429, "TooManyRequests", "slowly", Some(1))),
            Self::Internal => Some(Fault::status(500, "InternalError", "oh", None)),
            Self::Unavailable => Some(Fault::text(503, "starting")),
            Self::Late => Some(Fault::Late(TOO_LONG)),
            Self::Slow => Some(Fault::Delay(TOO_LONG)),
        }
    }
}

/// A request may take so long,
const LIMIT: Duration = Duration::from_millis(400);
/// and some take longer.
const TOO_LONG: Duration = Duration::from_millis(600);

/// Until some have, some of the requests go wrong; then the front is whole again.
async fn strike(front: &Arc<Front>, flaws: &'static [Flaw], seed: u64) {
    let count = Arc::new(AtomicUsize::new(0));
    let (weak, struck) = (Arc::downgrade(front), count.clone());
    let mut chance = Chance::of(seed, "flaws");
    front.intercept(move |ask| {
        let flaw = *chance.one_of(flaws)?;
        // Half of all watches, since there are few of them, and of the rest every fourth.
        if chance.below(4) > u64::from(ask.verb == "watch") {
            return None;
        }
        let front = weak.upgrade()?;
        let fault = flaw.strike(ask, &mut chance, &front);
        struck.fetch_add(usize::from(fault.is_some() || flaw == Flaw::Race && ask.verb == "patch"), Ordering::Relaxed);
        fault
    });
    let begun = Instant::now();
    let struck = || count.load(Ordering::Relaxed);
    until("strikes", || struck() > 25 || struck() > 1 && begun.elapsed() > Duration::from_secs(1)).await;
    front.heal();
}

fn controller(front: &Front, world: &World) -> Controller {
    Controller::new(client(front)).layout(world.layout).request_timeout(LIMIT).workers(3)
}

/// It comes to the same rest, and stays there.
async fn assert_end(front: &Front, world: &World, actor: Actor, referee: &mut Referee, expected: &End, what: &str) {
    rest(front, &[&actor]).await;
    End::of_front(front).assert_is(expected, what);
    referee.look(front);
    referee.created();
    assert_quiet(front).await;
    assert_eq!(actor.handle.restless(), 0, "{what}");
    actor.stop().await;
    assert_nothing_left(front, Controller::new(client(front)).layout(world.layout)).await;
}

async fn suffer(flaws: &'static [Flaw], seed: u64) {
    let layout = if seed.is_multiple_of(2) { Layout::Single } else { Layout::Split };
    let world = World::recorded(layout);
    let what = format!("{flaws:?}, seed {seed}, {layout:?}");
    let front = Arc::new(world.front());
    let mut referee = Referee::new(&front);
    let actor = Actor::start(controller(&front, &world)).await;
    strike(&front, flaws, seed).await;
    assert_end(&front, &world, actor, &mut referee, World::recorded_end(layout), &what).await;
}

/// Some at a time: there are few cores.
async fn all(runs: impl IntoIterator<Item = impl Future<Output = ()> + Send + 'static>) {
    let mut playing = JoinSet::new();
    for run in runs {
        if playing.len() >= 6 {
            playing.join_next().await.unwrap().unwrap();
        }
        playing.spawn(run);
    }
    while let Some(ended) = playing.join_next().await {
        ended.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_flaw_alone_changes_nothing_of_the_end() {
    World::recorded_end(Layout::Single);
    World::recorded_end(Layout::Split);
    let flaws = Flaw::ALL.iter().zip(seed()..);
    all(flaws.map(|(flaw, seed)| suffer(std::slice::from_ref(flaw), seed))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_flaws_at_once_change_nothing_of_the_end() {
    World::recorded_end(Layout::Single);
    World::recorded_end(Layout::Split);
    all((seed()..seed() + 6).map(|seed| suffer(&Flaw::ALL, seed))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_forgets_its_history_is_listed_again() {
    let world = World::recorded(Layout::Split);
    let front = world.front();
    let mut referee = Referee::new(&front);
    let actor = Actor::start(controller(&front, &world)).await;
    for _ in 0..8 {
        sleep(Duration::from_millis(60)).await;
        referee.look(&front);
        front.forget_history();
        referee = Referee::new(&front);
    }
    assert_end(&front, &world, actor, &mut referee, World::recorded_end(world.layout), "forgetful").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_went_while_nobody_watched_is_missed_in_the_next_list() {
    let world = World::recorded(Layout::Single);
    let front = world.front();
    let actor = Actor::start(controller(&front, &world)).await;
    rest(&front, &[&actor]).await;
    front.stop().await;
    let key = BindingKey::new("2e2998xln4qwlca7", "sea");
    assert!(actor.handle.snapshot().binding(&key).is_some());
    let sea = Request::delete(Kind::ApiBinding, key.cluster.clone(), key.name.clone());
    front.with(|kcp| kcp.handle(sea)).unwrap();
    front.restart().await.unwrap();
    until("its end", || front.with(|kcp| kcp.get(Origin::Local, Kind::ApiBinding, &key).is_none())).await;
    front.forget_history();
    rest(&front, &[&actor]).await;
    assert!(actor.handle.snapshot().binding(&key).is_none());
    actor.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_in_the_middle_is_waited_for() {
    for (pause, layout) in [(10, Layout::Split), (40, Layout::Single), (120, Layout::Split)] {
        let world = World::recorded(layout);
        let front = world.front();
        let mut referee = Referee::new(&front);
        let actor = Actor::start(controller(&front, &world)).await;
        for _ in 0..3 {
            sleep(Duration::from_millis(pause)).await;
            front.stop().await;
            sleep(Duration::from_millis(2 * pause)).await;
            front.restart().await.unwrap();
        }
        assert_end(&front, &world, actor, &mut referee, World::recorded_end(layout), "stops").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_there_yet_is_waited_for() {
    let world = World::bootstrap();
    let front = world.front();
    let mut referee = Referee::new(&front);
    front.stop().await;
    let actor = Actor::start(controller(&front, &world)).await;
    sleep(Duration::from_millis(300)).await;
    assert!(!actor.handle.has_lists());
    front.restart().await.unwrap();
    // As a kcp does while it starts.
    let mut left = 30;
    front.intercept(move |_| {
        left -= 1;
        match left {
            20.. => Some(Fault::text(503, "starting")),
            10..20 => Some(Fault::text(404, "404 page not found\n")),
            1..10 => Some(Fault::status(429, "TooManyRequests", "storage is (re)initializing", Some(1))),
            _ => None,
        }
    });
    assert_end(&front, &world, actor, &mut referee, &world.simulated(), "not there yet").await;
    assert_eq!(End::of_front(&front).bound(), 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_expires_between_two_pages_is_begun_anew() {
    let world = World::built(
        &Builder::new(3).crowded(false).bound(true).workspaces(100).bindings(700).exports(10),
        Layout::Single,
    );
    let front = Arc::new(world.front());
    let (weak, mut left) = (Arc::downgrade(&front), 2);
    front.intercept(move |ask| {
        if ask.query.contains("continue=") && left > 0 {
            left -= 1;
            let front = weak.upgrade()?;
            // Something happens, and what was before is forgotten.
            front.with(|kcp| {
                let (cluster, name) = {
                    let home = kcp.list(Origin::Local, Kind::LogicalCluster, None).next().unwrap();
                    (home["metadata"]["annotations"]["kcp.io/cluster"].as_str().unwrap().to_owned(), "cluster")
                };
                let note = json!({"metadata": {"annotations": {"example.com/note": left.to_string()}}});
                kcp.handle(Request::merge(Kind::LogicalCluster, cluster.as_str(), name, note)).unwrap();
            });
            front.forget_history();
        }
        None
    });
    let actor = Actor::start(Controller::new(client(&front)).layout(world.layout)).await;
    rest(&front, &[&actor]).await;
    let expired = front.count(|entry| entry.status == Some(410) && entry.ask.query.contains("continue="));
    assert!(expired >= 1, "no page was asked for too late");
    assert_eq!(actor.handle.snapshot().bindings().len(), 700);
    assert_eq!(actor.writes(), [""; 0]);
    actor.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_list_says_of_nothing_that_it_is_gone() {
    let world = World::bootstrap();
    let front = world.front();
    let actor = Actor::start(Controller::new(client(&front)).layout(world.layout)).await;
    rest(&front, &[&actor]).await;
    let (known, writes) = (actor.handle.snapshot(), actor.writes());
    front.intercept(|ask| {
        let bodies = [
            "{}",
            r#"{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}"#,
            r#"{"kind": "ShardList", "metadata": {"resourceVersion": "9999"}, "items": []}"#,
            r#"{"kind": "APIBindingList", "metadata": {}, "items": []}"#,
        ];
        let body = bodies[ask.number as usize % bodies.len()];
        (ask.verb == "list").then(|| Fault::Answer(http::Response::new(body.into())))
    });
    front.forget_history();
    until("lists", || front.count(|entry| entry.ask.verb == "list") > 24).await;
    let mut kept = actor.handle.snapshot();
    kept.set_now(known.now());
    assert!(kept == known, "something was forgotten");
    front.heal();
    rest(&front, &[&actor]).await;
    assert_eq!(actor.writes(), writes);
    actor.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_about_something_else_is_none() {
    let world = World::recorded(Layout::Split);
    let front = world.front();
    let mut left = 12;
    front.intercept(move |ask| {
        let bodies = ["{}", r#"{"metadata": {"name": "x", "annotations": {"kcp.io/cluster": "y"}}}"#];
        let body = bodies[left % bodies.len()];
        let strikes = left > 0 && ["patch", "create", "get"].contains(&ask.verb);
        left -= usize::from(strikes);
        strikes.then(|| Fault::Answer(http::Response::new(body.into())))
    });
    let actor = Actor::start(controller(&front, &world)).await;
    rest(&front, &[&actor]).await;
    End::of_front(&front).assert_is(World::recorded_end(world.layout), "answers about something else");
    let strange = |key: &BindingKey| ["", "y"].contains(&key.cluster.as_str());
    assert!(actor.done().iter().all(|(key, ..)| !strange(key)));
    actor.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_always_says_gone_is_not_asked_without_a_pause() {
    for verb in ["list", "watch"] {
        let world = World::bootstrap();
        let front = world.front();
        let is_struck = move |ask: &Ask| ask.verb == verb && ask.kind == Some(Kind::ApiExport);
        front.intercept(move |ask| is_struck(ask).then(|| Fault::status(410, "Expired", "too old", None)));
        let actor = Actor::start(Controller::new(client(&front)).layout(world.layout)).await;
        sleep(Duration::from_secs(2)).await;
        // From two servers, each of them four times in two seconds at most.
        let struck = front.count(|entry| is_struck(&entry.ask));
        assert!((2..=10).contains(&struck), "{struck} times in vain: {verb}");
        front.heal();
        rest(&front, &[&actor]).await;
        actor.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_that_lead_nowhere_are_not_begun_without_a_pause() {
    let event = |metadata: &str| format!("{{\"type\": \"BOOKMARK\", \"object\": {{\"metadata\": {metadata}}}}}\n");
    let nowhere = event("{}");
    let (one, two) = (event(r#"{"resourceVersion": "1"}"#), event(r#"{"resourceVersion": "2"}"#));
    // Without a version; to and fro between two of them.
    for bodies in [[nowhere.clone(), nowhere], [one, two]] {
        let world = World::bootstrap();
        let front = world.front();
        let is_struck = |ask: &Ask| ask.verb == "watch" && ask.kind == Some(Kind::ApiConversion);
        front.intercept(move |ask| {
            let body = &bodies[usize::from(ask.query.ends_with("resourceVersion=1"))];
            is_struck(ask).then(|| Fault::Answer(http::Response::new(body.clone().into())))
        });
        let actor = Actor::start(Controller::new(client(&front)).layout(world.layout)).await;
        sleep(Duration::from_secs(2)).await;
        let struck = front.count(|entry| is_struck(&entry.ask));
        assert!((2..=24).contains(&struck), "{struck} watches in vain");
        let lost = front.count(|entry| is_struck(&entry.ask) && entry.ask.query.ends_with("resourceVersion="));
        assert_eq!(lost, 0, "watches that begin nowhere");
        actor.stop().await;
    }
}

/// Something to see.
fn note(front: &Front, number: u32) {
    let note = json!({"metadata": {"annotations": {"example.com/note": number.to_string()}}});
    for kind in [Kind::ApiBinding, Kind::ApiExport] {
        front.with(|kcp| kcp.handle(Request::merge(kind, "root", "tenancy.kcp.io", note.clone()))).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_comes_back_from_a_copy_is_listed_again() {
    let world = World::bootstrap();
    let front = world.front();
    let actor = Actor::start(Controller::new(client(&front)).layout(world.layout)).await;
    rest(&front, &[&actor]).await;
    let copy = front.with(|kcp| kcp.clone());
    (0..20).for_each(|number| note(&front, number));
    rest(&front, &[&actor]).await;
    front.stop().await;
    front.with(|kcp| *kcp = copy);
    // What the front keeps beside it is not of the copy.
    front.forget_history();
    front.restart().await.unwrap();
    rest(&front, &[&actor]).await;
    // What happens from there on is seen, although it was told before with the same versions.
    let status = json!({"status": {"phase": "Binding", "conditions": []}});
    let request = Request::merge(Kind::ApiBinding, "root", "tenancy.kcp.io", status).of_status();
    front.with(|kcp| kcp.handle(request.managed_by("vandal"))).unwrap();
    rest(&front, &[&actor]).await;
    assert_eq!(End::of_front(&front).bound(), 8);
    actor.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_is_still_to_come_is_not_waited_for() {
    let world = World::bootstrap();
    let front = world.front();
    let mut left = 3;
    front.intercept(move |ask| {
        let strikes = ask.verb == "watch" && ask.kind == Some(Kind::ApiExport) && left > 0;
        left -= u32::from(strikes);
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 504, "reason": "Timeout",
            "message": "Timeout: Too large resource version: 500, current: 400",
            "details": {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]},
        });
        let answer = http::Response::builder().status(504).body(status.to_string().into()).unwrap();
        strikes.then_some(Fault::Answer(answer))
    });
    let actor = Actor::start(Controller::new(client(&front)).layout(world.layout)).await;
    rest(&front, &[&actor]).await;
    // Two at first, and one for each refusal.
    let is_list = |ask: &Ask| ask.verb == "list" && ask.kind == Some(Kind::ApiExport);
    until("lists", || front.count(|entry| is_list(&entry.ask)) == 5).await;
    actor.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn back_offs_end_when_the_server_is_back() {
    let builder = Builder::new(5).crowded(false).bound(false).workspaces(100).bindings(200).exports(4);
    let world = World::built(&builder, Layout::Single);
    let front = world.front();
    // Whoever waits for his time, waits for longer than anybody here.
    let patient = queue::Config { base: Duration::from_secs(600), max: Duration::from_secs(600), bucket: None };
    let actor = Actor::start(Controller::new(client(&front)).layout(world.layout).workers(8).queue(patient)).await;
    until("a beginning", || End::of_front(&front).bound() > 10).await;
    front.stop().await;
    let failures = || retries(&actor);
    until("failures", || failures() > 100).await;
    front.restart().await.unwrap();
    rest(&front, &[&actor]).await;
    assert_eq!(End::of_front(&front).bound(), 200);
    actor.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_that_breaks_again_and_again_ends_no_back_off() {
    let world = World::bootstrap();
    let front = world.front();
    front.intercept(move |ask| match ask.verb {
        "patch" => Some(Fault::status(500, "InternalError", "oh", None)),
        "watch" if ask.kind == Some(Kind::ApiExport) && ask.number % 2 == 0 => {
            Some(Fault::status(429, "TooManyRequests", "slowly", None))
        }
        "watch" if matches!(ask.kind, Some(Kind::ApiExport | Kind::ApiConversion)) => {
            Some(Fault::Answer(http::Response::new("?\n".into())))
        }
        _ => None,
    });
    let patient = queue::Config { base: Duration::from_secs(600), max: Duration::from_secs(600), bucket: None };
    let actor = Actor::start(Controller::new(client(&front)).layout(world.layout).queue(patient)).await;
    until("watches", || front.count(|entry| entry.ask.verb == "watch") > 20).await;
    let patches = front.count(|entry| entry.ask.verb == "patch");
    assert!((8..16).contains(&patches), "{patches} patches");
    actor.stop().await;
}

fn retries(actor: &Actor) -> u64 {
    crate::stage::metric(&actor.handle.metrics(), "workqueue_retries_total")
}
