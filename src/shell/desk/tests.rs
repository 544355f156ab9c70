use std::collections::BTreeSet;

use tokio::time::{advance, timeout};

use super::*;
use crate::effect::Patch;

/// A desk that is open, with no streams to wait for.
fn desk() -> Desk {
    let desk = Desk::new(Layout::Split, Config { bucket: None, ..Config::default() }, "root", BTreeSet::new(), false);
    desk.lead(true);
    desk
}

impl Desk {
    fn put(&self, key: &BindingKey) {
        self.add(&mut self.lock(), key.clone());
    }
}

fn key(name: &str) -> BindingKey {
    BindingKey::new("meadow", name)
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_years_gets_a_minute() {
    let desk = desk();
    desk.put(&key("geese"));
    let taken = desk.next().await;
    let at_least = Some(Duration::from_secs(i32::MAX as u64));
    desk.finish(&taken, Some(Retry::Backoff { at_least }));
    assert!(timeout(MOST - SECOND, desk.next()).await.is_err());
    assert_eq!(timeout(2 * SECOND, desk.next()).await, Ok(key("geese")));
}

#[tokio::test(start_paused = true)]
async fn who_had_nothing_to_do_does_not_hang() {
    let desk = desk();
    advance(2 * STUCK).await;
    desk.put(&key("geese"));
    assert_eq!(desk.stuck(), None);
    advance(STUCK / 2).await;
    desk.put(&key("ducks"));
    advance(STUCK / 2 + SECOND).await;
    assert!(desk.stuck().unwrap().contains("nobody has taken a key"));
}

#[tokio::test(start_paused = true)]
async fn a_pass_hangs_when_nothing_comes_of_it_any_more() {
    let desk = desk();
    desk.put(&key("geese"));
    let taken = desk.next().await;
    // As many CRDs as there are, and a server that answers none of the requests in time.
    let no_answer = Outcome::NoAnswer("no answer within 30s".into());
    for _ in 0..30 {
        advance(30 * SECOND).await;
        desk.note(&taken, &Effect::ReadApiBinding(taken.clone()), &no_answer);
        assert_eq!(desk.stuck(), None);
    }
    advance(STUCK + SECOND).await;
    assert!(desk.stuck().unwrap().contains("meadow|geese"));
}

#[tokio::test(start_paused = true)]
async fn keys_are_counted_once_and_wait_from_when_they_are_added() {
    let desk = desk();
    let count = |name: &str| {
        let text = desk.metrics.text(&desk);
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()
    };
    (0..3).for_each(|_| desk.put(&key("geese")));
    let taken = desk.next().await;
    assert_eq!(count("workqueue_adds_total"), 1.0);
    // Once more, while it is worked on.
    desk.put(&taken);
    advance(7 * SECOND).await;
    desk.finish(&taken, Some(Retry::Forget));
    let taken = desk.next().await;
    assert_eq!((count("workqueue_adds_total"), count("workqueue_queue_duration_seconds_sum")), (2.0, 7.0));
    // And again, by itself.
    desk.finish(&taken, Some(Retry::Backoff { at_least: None }));
    desk.next().await;
    assert_eq!((count("workqueue_adds_total"), count("workqueue_queue_duration_seconds_sum")), (3.0, 7.0));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_of_who_is_gone() {
    let desk = desk();
    let json =
        r#"{"metadata": {"name": "geese", "annotations": {"kcp.io/cluster": "meadow"}}, "spec": {"reference": {}}}"#;
    let binding = Object::from_json(Kind::ApiBinding, json).unwrap();
    desk.learn([Change::Put { origin: Origin::Local, object: Box::new(binding.clone()) }], Told::Watch);
    let taken = desk.next().await;
    let patch = Patch {
        cluster: taken.cluster.clone(),
        name: taken.name.clone(),
        subresource: "status".into(),
        field_manager: "kcp-apibinding".into(),
        force: true,
        resource_version: Text::default(),
        body: serde_json::from_str("{}").unwrap(),
    };
    desk.note(&taken, &Effect::PatchApiBindingStatus(patch), &Outcome::NoAnswer("cut".into()));
    desk.finish(&taken, Some(Retry::Backoff { at_least: None }));
    desk.learn([Change::delete(&binding)], Told::Watch);
    let taken = desk.next().await;
    desk.finish(&taken, Some(Retry::Forget));
    advance(2 * STUCK).await;
    desk.put(&key("ducks"));
    let other = desk.next().await;
    desk.finish(&other, Some(Retry::Forget));
    let state = desk.lock();
    assert!(state.unsure.is_empty() && state.working.is_empty() && state.queued.is_empty());
}
