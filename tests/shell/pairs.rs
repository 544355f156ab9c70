//! One that stops in the middle, two at once, and two of which one works.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use apibinding::api::{BindingKey, Kind};
use apibinding::effect::Outcome;
use apibinding::front::{Ask, Fault, Front, Settings};
use apibinding::shell::{Controller, Lease};
use apibinding::sim::{Builder, Request};
use apibinding::snapshot::Layout;
use serde_json::json;
use tokio::time::sleep;

use crate::fatal::{client_of, user};
use crate::referee::Referee;
use crate::stage::{Actor, assert_nothing_left, assert_quiet, client, rest, until};
use crate::worlds::{End, World};

fn many(layout: Layout) -> World {
    World::built(&Builder::new(11).crowded(false).bound(false).workspaces(20).bindings(100).exports(6), layout)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_stops_finishes_what_it_does_and_begins_nothing() {
    let world = many(Layout::Single);
    let front = world.front();
    let mut referee = Referee::new(&front);
    front.intercept(|ask| (ask.verb != "watch").then_some(Fault::Late(Duration::from_millis(30))));
    let controller = Controller::new(client(&front)).layout(world.layout).workers(3);
    for rounds in 0..2 {
        let actor = Actor::start(controller.clone()).await;
        until("a beginning", || actor.done().len() > 20).await;
        let before = actor.done().len();
        let begun = Instant::now();
        let handle = actor.handle.clone();
        let done = actor.done_later();
        actor.stop().await;
        assert!(begun.elapsed() < Duration::from_secs(5), "{rounds}: {:?}", begun.elapsed());
        let done = done.lock().unwrap().clone();
        let mut keys: Vec<&BindingKey> = done[before..].iter().map(|(key, ..)| key).collect();
        keys.sort();
        keys.dedup();
        // Between the count and the stop each may have begun with another one.
        assert!(keys.len() <= 6, "{keys:?}");
        assert!(done.iter().all(|(.., outcome)| !matches!(outcome, Outcome::NoAnswer(_))), "something was abandoned");
        let _ = handle;
        let requests = front.requests();
        sleep(Duration::from_millis(100)).await;
        assert_eq!(front.requests(), requests, "requests after the stop");
    }
    front.heal();
    let actor = Actor::start(controller.clone()).await;
    rest(&front, &[&actor]).await;
    End::of_front(&front).assert_is(&world.simulated(), "stopped");
    referee.look(&front);
    referee.created();
    actor.stop().await;
    assert_nothing_left(&front, controller).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_hangs_is_abandoned_when_its_time_is_over() {
    let world = World::recorded(Layout::Split);
    let front = world.front();
    front.intercept(|ask| (ask.verb == "patch").then_some(Fault::Late(Duration::from_secs(60))));
    let controller = Controller::new(client(&front)).layout(world.layout);
    let actor = Actor::start(controller.clone().grace(Duration::from_millis(200))).await;
    until("a beginning", || front.count(|entry| entry.ask.verb == "patch") > 1).await;
    let begun = Instant::now();
    actor.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    front.heal();
    let actor = Actor::start(controller).await;
    rest(&front, &[&actor]).await;
    End::of_front(&front).assert_is(World::recorded_end(world.layout), "abandoned");
    actor.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_at_once_do_no_harm() {
    for layout in [Layout::Single, Layout::Split] {
        let world = World::recorded(layout);
        let front = world.front();
        let mut referee = Referee::new(&front);
        let controller = Controller::new(client(&front)).layout(layout).workers(4);
        let (one, two) = tokio::join!(Actor::start(controller.clone()), Actor::start(controller.clone()));
        rest(&front, &[&one, &two]).await;
        End::of_front(&front).assert_is(World::recorded_end(layout), &format!("two, {layout:?}"));
        referee.look(&front);
        referee.created();
        referee.assert_no_lock_lost(&front);
        assert_quiet(&front).await;
        one.stop().await;
        two.stop().await;
        assert_nothing_left(&front, controller).await;
    }
}

const LASTS: Duration = Duration::from_secs(3);

fn lease(identity: &str) -> Lease {
    Lease {
        cluster: "root".into(),
        namespace: "default".into(),
        name: "apibinding-root".into(),
        identity: identity.into(),
        duration: LASTS,
    }
}

/// A front with two controllers, of which the first leads and the second stands by. Each has its own name there.
async fn pair(world: &World) -> (Arc<Front>, Actor, Actor) {
    let users = Some(vec![user("one"), user("two")]);
    let front = Arc::new(world.front_with(Settings { users, ..world.settings() }));
    let controller = |name: &str| {
        let client = client_of(&front, &format!("token of {name}"));
        Controller::new(client).layout(world.layout).lease(lease(name)).grace(Duration::from_secs(1))
    };
    let one = Actor::start(controller("one")).await;
    until("the first one leads", || one.handle.is_working()).await;
    let two = Actor::start(controller("two")).await;
    until("the second one stands by, warm", || two.handle.has_lists()).await;
    (front, one, two)
}

/// Something to do.
fn disturb(front: &Front, number: u32) {
    // A status that somebody took away has to be written again.
    let status = json!({"status": {"phase": "Binding", "conditions": []}});
    let request = Request::merge(Kind::ApiBinding, "root", "tenancy.kcp.io", status).of_status();
    front.with(|kcp| kcp.handle(request.managed_by(format!("vandal-{number}")))).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_one_takes_over_at_once_from_one_that_stops() {
    let world = World::bootstrap();
    let (front, one, two) = pair(&world).await;
    rest(&front, &[&one]).await;
    assert_eq!(End::of_front(&front).bound(), 8);
    assert_eq!(two.done().len(), 0);
    let begun = Instant::now();
    one.stop().await;
    disturb(&front, 1);
    until("the second one leads", || two.handle.is_working()).await;
    assert!(begun.elapsed() < LASTS / 2, "{:?}", begun.elapsed());
    rest(&front, &[&two]).await;
    assert_eq!(End::of_front(&front).bound(), 8);
    assert!(!two.writes().is_empty());
    two.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_one_takes_over_from_one_that_is_gone_without_a_word() {
    let world = World::bootstrap();
    let (front, one, two) = pair(&world).await;
    until("a beginning", || one.done().len() > 3).await;
    one.kill();
    let begun = Instant::now();
    until("the second one leads", || two.handle.is_working()).await;
    let took = begun.elapsed();
    assert!(took > LASTS / 2 && took < LASTS + Duration::from_secs(2), "{took:?}");
    rest(&front, &[&two]).await;
    End::of_front(&front).assert_is(&world.simulated(), "taken over");
    two.stop().await;
}

/// A leader whose requests for the lease come to nothing stops before the other one begins.
async fn part(fault: fn() -> Fault) {
    let world = World::bootstrap();
    let (front, one, two) = pair(&world).await;
    rest(&front, &[&one]).await;
    let parted = Arc::new(AtomicBool::new(true));
    let is_parted = parted.clone();
    front.intercept(move |ask| {
        let strikes = ask.user == "one" && ask.resource == "leases" && is_parted.load(Ordering::Relaxed);
        strikes.then(fault)
    });
    let begun = Instant::now();
    let (mut both, mut none) = (0, 0);
    let mut number = 0;
    until("the second one leads", || {
        let leading = [&one, &two].map(|actor| actor.handle.is_working());
        both += u32::from(leading == [true; 2]);
        none += u32::from(leading == [false; 2]);
        number += 1;
        if number % 20 == 0 {
            disturb(&front, number);
        }
        leading[1]
    })
    .await;
    assert!(begun.elapsed() < 2 * LASTS, "{:?}", begun.elapsed());
    assert_eq!(both, 0, "both led");
    assert!(none > 0, "the first one stopped just when the second one began");
    let before = one.done().len();
    disturb(&front, 0);
    rest(&front, &[&two]).await;
    assert_eq!(one.done().len(), before, "who does not lead has written");
    // It comes back, and stands by.
    parted.store(false, Ordering::Relaxed);
    sleep(LASTS / 3).await;
    assert!(!one.handle.is_working() && two.handle.is_working());
    assert_eq!(End::of_front(&front).bound(), 8);
    two.stop().await;
    until("the first one leads again", || one.handle.is_working()).await;
    one.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_cannot_renew_stops_before_the_next_one_begins() {
    tokio::join!(part(|| Fault::Cut), part(|| Fault::Delay(Duration::from_secs(30))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_lease_somebody_touches_goes_on() {
    let world = World::bootstrap();
    let (front, one, two) = pair(&world).await;
    rest(&front, &[&one]).await;
    let mut left = 1;
    front.intercept(move |ask| {
        let strikes = ask.user == "one" && ask.verb == "update" && ask.resource == "leases" && left > 0;
        left -= u32::from(strikes);
        strikes.then(|| Fault::status(409, "Conflict", "the object has been modified", None))
    });
    until("a conflict", || front.count(|entry| entry.status == Some(409)) > 0).await;
    let renewals = || front.count(|entry| entry.ask.user == "one" && entry.ask.verb == "update");
    let before = renewals();
    until("two renewals", || {
        assert!(one.handle.is_working() && !two.handle.is_working());
        renewals() > before + 1
    })
    .await;
    one.stop().await;
    two.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_stops_does_not_go_on_when_its_lease_is_over() {
    let builder = Builder::new(3).crowded(false).bound(false).workspaces(1).bindings(1).exports(1).resources(12);
    let world = World::built(&builder, Layout::Single);
    let front = world.front();
    let is_work = |ask: &Ask| !["list", "watch"].contains(&ask.verb) && ask.resource != "leases";
    front.intercept(move |ask| is_work(ask).then_some(Fault::Late(Duration::from_millis(500))));
    let controller = Controller::new(client(&front)).layout(world.layout).lease(lease("one"));
    let actor = Actor::start(controller.grace(Duration::from_secs(8))).await;
    // As many are to be created, one after the other.
    until("a beginning", || front.count(|entry| entry.ask.verb == "create") > 1).await;
    let begun = Instant::now();
    let work = || front.count(|entry| is_work(&entry.ask));
    let stopped = tokio::spawn(actor.stop());
    let (mut seen, mut last) = (0, Duration::ZERO);
    until("the stop", || {
        if work() > seen {
            (seen, last) = (work(), begun.elapsed());
        }
        stopped.is_finished()
    })
    .await;
    assert!(last < LASTS * 2 / 3 + Duration::from_millis(500), "it went on for {last:?}");
    assert!(last > Duration::from_millis(500), "it had nothing to do for longer than {last:?}");
}
