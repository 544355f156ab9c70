//! The controller that runs: a thin async shell around the core.
//!
//! [`Controller`] lists and watches the six kinds of a kcp, and three of them in its cache server, keeps
//! what it is told in a [`Snapshot`], lets workers go through plan, act and
//! observe with a [`Pass`](crate::pass::Pass) for each key of the [`queue`], and carries
//! effects out as they stand there. One controller serves one shard.
//!
//! ```no_run
//! use apibinding::shell::Controller;
//!
//! # async fn f() -> Result<(), Box<dyn std::error::Error>> {
//! let mut config = kube::Config::infer().await?;
//! config.default_retry = false; // when to try again is the controller's business
//! let client = kube::Client::try_from(config)?;
//! let stop = async {
//!     let _ = tokio::signal::ctrl_c().await;
//! };
//! Controller::new(client)
//!     .workers(4)
//!     .hook(|key, effect, outcome| println!("{key}: {effect}: {outcome}"))
//!     .run(stop)
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What it holds on to
//!
//! * Nothing is processed before all kinds are listed. A watch that breaks goes on where it ended; where
//!   the server has forgotten that, everything is listed again, and what is not in the list is gone.
//! * Workers plan on what all of them know at that moment, answers to requests included. No lock is
//!   held while anybody waits.
//! * While the server starts, or is gone, it waits and tries again. What waiting does not mend is a
//!   [`Failure`].

// It has a clock, locks and a network, so that the core need not.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod desk;
mod dump;
mod executor;
mod failure;
mod lease;
mod metrics;
mod others;
mod pages;
mod probes;
mod rest;
mod server;
mod stream;
mod turns;
mod worker;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::api::BindingKey;
use crate::effect::{Effect, Outcome};
use crate::queue;
use crate::snapshot::{Layout, Origin, STREAMS, Snapshot};
use desk::Desk;
pub use dump::{Dump, dump};
pub use executor::Executor;
pub use failure::Failure;
use lease::Candidate;
pub use lease::Lease;
use probes::Probes;
pub use server::Server;
use stream::{Sightings, Stream};
use turns::Turns;
use worker::Worker;

type Hook = Arc<dyn Fn(&BindingKey, &Effect, &Outcome) + Send + Sync>;

/// A controller that is to run: what it talks to, and how.
#[derive(Clone)]
pub struct Controller {
    server: Server,
    cache: Option<Server>,
    layout: Layout,
    workers: usize,
    queue: queue::Config,
    limit: Duration,
    grace: Duration,
    lease: Option<Lease>,
    probes: Option<SocketAddr>,
    shard: String,
    is_dry: bool,
    hook: Option<Hook>,
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("layout", &self.layout)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

impl Controller {
    /// A controller of this server, whose cache server is reached through it as well.
    ///
    /// As kcp has it: locks in a [single](Layout::Single) annotation and two workers. Back-offs end at a
    /// minute, and nothing else limits all keys together. A request may take thirty seconds, the end ten.
    pub fn new(server: impl Into<Server>) -> Self {
        let server = server.into();
        Self {
            cache: Some(server.clone()),
            server,
            layout: Layout::Single,
            workers: 2,
            queue: queue::Config { max: Duration::from_secs(60), bucket: None, ..queue::Config::default() },
            limit: Duration::from_secs(30),
            grace: Duration::from_secs(10),
            lease: None,
            probes: None,
            shard: "root".into(),
            is_dry: false,
            hook: None,
        }
    }

    /// Where the cache server is. `None`: there is none, and exports of other shards are not known.
    #[must_use]
    pub fn cache_server(self, server: impl Into<Option<Server>>) -> Self {
        Self { cache: server.into(), ..self }
    }

    /// How locks are kept.
    #[must_use]
    pub fn layout(self, layout: Layout) -> Self {
        Self { layout, ..self }
    }

    /// How many keys are worked on at a time; at least one.
    #[must_use]
    pub fn workers(self, workers: usize) -> Self {
        Self { workers: workers.max(1), ..self }
    }

    /// How long keys that fail wait.
    #[must_use]
    pub fn queue(self, queue: queue::Config) -> Self {
        Self { queue, ..self }
    }

    /// How long a request may take; after that nobody knows whether it was done.
    #[must_use]
    pub fn request_timeout(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// How long what is under way may go on after the stop.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Works only while it holds this lease.
    #[must_use]
    pub fn lease(self, lease: impl Into<Option<Lease>>) -> Self {
        Self { lease: lease.into(), ..self }
    }

    /// Answers `/healthz`, `/readyz` and `/metrics` there.
    #[must_use]
    pub fn probes(self, address: impl Into<Option<SocketAddr>>) -> Self {
        Self { probes: address.into(), ..self }
    }

    /// The name of the shard, for metrics.
    #[must_use]
    pub fn shard(self, shard: impl Into<String>) -> Self {
        Self { shard: shard.into(), ..self }
    }

    /// Writes nothing, and says what it would write.
    #[must_use]
    pub fn dry_run(self, is_dry: bool) -> Self {
        Self { is_dry, ..self }
    }

    /// Sees every effect, and what came of it, before the snapshot does. It should not take long.
    #[must_use]
    pub fn hook(self, hook: impl Fn(&BindingKey, &Effect, &Outcome) + Send + Sync + 'static) -> Self {
        Self { hook: Some(Arc::new(hook)), ..self }
    }

    /// Prepares it, so that it can be [looked into](Handle) while it runs.
    ///
    /// # Errors
    /// The address of the probes cannot be had.
    pub async fn start(self) -> Result<Running, Failure> {
        let probes = match self.probes {
            Some(address) => Some(Probes::bind(address).await?),
            None => None,
        };
        let is_there = |origin| origin == Origin::Local || self.cache.is_some();
        let streams = STREAMS.into_iter().filter(|(origin, _)| is_there(*origin)).collect();
        let desk = Desk::new(self.layout, self.queue, &self.shard, streams, self.lease.is_none());
        let address = probes.as_ref().and_then(Probes::address);
        let handle = Handle { desk: Arc::new(desk), address };
        Ok(Running { controller: self, handle, probes })
    }

    /// Runs until `stop` comes to its end, or something is wrong that waiting does not mend.
    ///
    /// Then no new key is taken, what is under way is finished or, after its [time](Self::grace),
    /// abandoned, and the lease is given up.
    ///
    /// # Errors
    /// What waiting does not mend.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), Failure> {
        self.start().await?.run(stop).await
    }
}

/// A controller that is ready to run.
#[derive(Debug)]
pub struct Running {
    controller: Controller,
    handle: Handle,
    probes: Option<Probes>,
}

/// What can be seen of a controller that runs.
#[derive(Clone, Debug)]
pub struct Handle {
    desk: Arc<Desk>,
    address: Option<SocketAddr>,
}

impl Handle {
    /// What it knows now.
    pub fn snapshot(&self) -> Snapshot {
        self.desk.view()
    }

    /// Whether all kinds are listed.
    pub fn has_lists(&self) -> bool {
        self.desk.has_lists()
    }

    /// Whether it works: all kinds are listed, and it leads.
    pub fn is_working(&self) -> bool {
        self.desk.is_open()
    }

    /// Whether there is nothing to do: no key is queued, worked on, or waits for its time.
    pub fn is_idle(&self) -> bool {
        self.desk.is_open() && self.desk.load() == (0, 0, 0)
    }

    /// How many keys do not come to rest.
    pub fn restless(&self) -> usize {
        self.desk.restless()
    }

    /// What Prometheus would get.
    pub fn metrics(&self) -> String {
        self.desk.metrics.text(&self.desk)
    }

    /// Where the probes are answered.
    pub fn probes(&self) -> Option<SocketAddr> {
        self.address
    }
}

impl Running {
    /// Looks into it while it runs.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Runs: see [`Controller::run`].
    ///
    /// # Errors
    /// What waiting does not mend.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), Failure> {
        let Self { controller, handle: Handle { desk, .. }, probes } = self;
        let (server, limit) = (controller.server.clone(), controller.limit);
        let mut watching: JoinSet<Result<std::convert::Infallible, Failure>> = JoinSet::new();
        let sightings = [Arc::<Sightings>::default(), Arc::<Sightings>::default()];
        for (origin, kind) in STREAMS {
            let (server, sightings) = match (origin, &controller.cache) {
                (Origin::Local, _) => (server.clone(), sightings[0].clone()),
                (Origin::Global, Some(cache)) => (cache.clone(), sightings[1].clone()),
                (Origin::Global, None) => continue,
            };
            let (layout, desk) = (controller.layout, desk.clone());
            let stream =
                Stream { server, origin, kind, layout, limit, sightings, desk, trouble: None, was_away: false };
            watching.spawn(stream.run());
        }
        if let Some(probes) = probes {
            let desk = desk.clone();
            watching.spawn(async move { Ok(probes.serve(desk).await) });
        }
        let stopping = CancellationToken::new();
        let worker = Worker {
            desk: desk.clone(),
            executor: Executor::new(server.clone(), limit),
            turns: Turns::default(),
            hook: controller.hook,
            is_dry: controller.is_dry,
        };
        let mut working = JoinSet::new();
        for _ in 0..controller.workers {
            working.spawn(worker.clone().run(stopping.clone()));
        }
        let mut candidate = controller.lease.map(|lease| Candidate::new(lease, server, desk));
        let leading = async {
            match &mut candidate {
                Some(candidate) => candidate.run().await,
                None => std::future::pending().await,
            }
        };
        let ended = tokio::select! {
            biased;
            () = stop => Ok(()),
            ended = watching.join_next() => Err(failed(ended)),
            ended = working.join_next() => Err(failed(ended.map(|ended| ended.map(|()| Err::<std::convert::Infallible, _>(Failure::Broken("a worker".into())))))),
            ended = leading => ended.map(|never| match never {}),
        };
        stopping.cancel();
        let drained = timeout(controller.grace, async { while working.join_next().await.is_some() {} });
        let running_out = async {
            match &mut candidate {
                Some(candidate) => candidate.run_out().await,
                None => std::future::pending().await,
            }
        };
        let is_drained = tokio::select! {
            drained = drained => drained.is_ok(),
            never = running_out => match never {},
        };
        if !is_drained {
            tracing::warn!(grace = ?controller.grace, "what was under way is abandoned");
        }
        working.shutdown().await;
        watching.shutdown().await;
        if let Some(candidate) = &mut candidate {
            let _ = timeout(controller.grace, candidate.give_up()).await;
        }
        ended
    }
}

fn failed<T>(ended: Option<Result<Result<T, Failure>, tokio::task::JoinError>>) -> Failure {
    match ended {
        Some(Ok(Err(failure))) => failure,
        Some(Err(error)) => Failure::Broken(error.to_string()),
        Some(Ok(Ok(_))) | None => Failure::Broken("nobody is left".into()),
    }
}
