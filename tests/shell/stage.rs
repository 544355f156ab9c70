//! A controller on a stage: started, watched and stopped.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use apibinding::api::BindingKey;
use apibinding::effect::{Effect, Outcome};
use apibinding::front::{Entry, Front};
use apibinding::shell::{Controller, Failure, Handle};
use apibinding::snapshot::{STREAMS, Snapshot};
use kube::{Client, Config};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Nothing here takes as long.
pub const DEADLINE: Duration = Duration::from_secs(40);

pub fn config(front: &Front) -> Config {
    let mut config = Config::new(front.url().parse().unwrap());
    config.default_retry = false;
    config
}

pub fn client(front: &Front) -> Client {
    Client::try_from(config(front)).unwrap()
}

/// An effect of a controller, and what came of it.
pub type Done = (BindingKey, Effect, Outcome);

/// A controller that runs.
pub struct Actor {
    pub handle: Handle,
    done: Arc<Mutex<Vec<Done>>>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), Failure>>,
}

impl Actor {
    pub async fn start(controller: Controller) -> Self {
        let done = Arc::<Mutex<Vec<Done>>>::default();
        let seen = done.clone();
        let controller = controller.hook(move |key, effect, outcome| {
            seen.lock().unwrap().push((key.clone(), effect.clone(), outcome.clone()));
        });
        let running = controller.start().await.unwrap();
        let handle = running.handle();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(running.run(async {
            let _ = stopped.await;
        }));
        Self { handle, done, stop: Some(stop), task }
    }

    /// All that it did so far.
    pub fn done(&self) -> Vec<Done> {
        self.done.lock().unwrap().clone()
    }

    /// The same, to be looked at when it is over.
    pub fn done_later(&self) -> Arc<Mutex<Vec<Done>>> {
        self.done.clone()
    }

    /// What it wrote, or tried to. What the server refuses as invalid is tried with each look.
    pub fn writes(&self) -> Vec<String> {
        let done = self.done.lock().unwrap();
        let writes = done.iter().filter(|(_, effect, outcome)| !effect.is_read() && !outcome.has_reason("Invalid"));
        writes.map(|(key, effect, outcome)| format!("{key}: {effect}: {outcome}")).collect()
    }

    /// Tells it to stop, and waits until it has.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        let ended = timeout(Duration::from_secs(15), &mut self.task).await.expect("it to stop").unwrap();
        assert_eq!(ended, Ok(()));
    }

    /// Ends it without a goodbye.
    pub fn kill(self) {
        self.task.abort();
    }

    /// Waits until it has ended, and gives why.
    pub async fn failure(mut self) -> Failure {
        let ended = timeout(Duration::from_secs(5), &mut self.task).await.expect("it to end").unwrap();
        ended.expect_err("it has failed")
    }

    /// How often it saw somebody else write what is its own.
    pub fn foreign_writes(&self) -> u64 {
        metric(&self.handle.metrics(), "apibinding_foreign_writes_total")
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The value of a metric that has no labels, or the sum over all of them.
pub fn metric(text: &str, name: &str) -> u64 {
    let lines = text.lines().filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])));
    lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap() as u64).sum()
}

/// Waits until something holds.
#[track_caller]
pub fn until<'a>(what: &'a str, mut holds: impl FnMut() -> bool + 'a) -> impl Future<Output = ()> + 'a {
    let begun = Instant::now();
    async move {
        while !holds() {
            assert!(begun.elapsed() < DEADLINE, "waited in vain: {what}");
            sleep(Duration::from_millis(5)).await;
        }
    }
}

/// What there is to know of a front.
pub fn truth(front: &Front, like: &Snapshot) -> Snapshot {
    let mut truth = Snapshot::new(like.layout());
    truth.set_now(like.now());
    let changes = front.with(|kcp| STREAMS.map(|(origin, kind)| kcp.relist(origin, kind)));
    for change in changes {
        truth.apply(change);
    }
    truth
}

fn knows(front: &Front, handle: &Handle) -> bool {
    let known = handle.snapshot();
    truth(front, &known) == known
}

/// Waits until nobody has anything to do any more, and the controllers know all that there is to know.
pub async fn rest(front: &Front, actors: &[&Actor]) {
    let begun = Instant::now();
    loop {
        let is_idle = || front.is_at_rest() && actors.iter().all(|actor| actor.handle.is_idle());
        if is_idle() && actors.iter().all(|actor| knows(front, &actor.handle)) && is_idle() {
            return;
        }
        if let Some(actor) = actors.iter().find(|actor| actor.task.is_finished()) {
            panic!("a controller has ended: {:?}", actor.handle);
        }
        if begun.elapsed() > DEADLINE {
            let idle: Vec<bool> = actors.iter().map(|actor| actor.handle.is_idle()).collect();
            let wise: Vec<bool> = actors.iter().map(|actor| knows(front, &actor.handle)).collect();
            let last: Vec<String> = front.log().iter().rev().take(20).map(told).collect();
            panic!(
                "no rest: the front rests: {}; idle: {idle:?}; all is known: {wise:?}; the last requests:\n{}",
                front.is_at_rest(),
                last.join("\n")
            );
        }
        sleep(Duration::from_millis(10)).await;
    }
}

pub fn told(entry: &Entry) -> String {
    format!("{:?} {} {}?{}", entry.status, entry.ask.method, entry.ask.path, entry.ask.query)
}

/// What was asked that is no watch.
pub fn asked(front: &Front) -> Vec<String> {
    front.log().iter().filter(|entry| entry.ask.verb != "watch").map(told).collect()
}

/// Nobody asks for anything any more. A watch that was cut just before may still lead to a list, after which all is
/// looked at again, and what the server refuses as invalid tried.
pub async fn assert_quiet(front: &Front) {
    let begun = Instant::now();
    loop {
        front.clear_log();
        sleep(Duration::from_millis(150)).await;
        let asked = asked(front);
        if asked.is_empty() {
            return;
        }
        let is_look = |entry: &Entry| ["list", "watch"].contains(&entry.ask.verb) || entry.status == Some(422);
        assert!(front.log().iter().all(is_look), "requests at rest: {asked:?}");
        assert!(begun.elapsed() < Duration::from_secs(10), "lists at rest: {asked:?}");
    }
}

/// A controller that starts where all is done writes nothing.
pub async fn assert_nothing_left(front: &Front, controller: Controller) {
    let version = front.with(|kcp| kcp.version());
    let actor = Actor::start(controller).await;
    rest(front, &[&actor]).await;
    assert_eq!(actor.writes(), [""; 0], "a restart wrote");
    assert_eq!(front.with(|kcp| kcp.version()), version);
    assert_eq!(actor.foreign_writes(), 0);
    actor.stop().await;
}

pub fn seed() -> u64 {
    std::env::var("SHELL_SEED").map_or(1, |seed| seed.parse().expect("SHELL_SEED has to be a number"))
}
