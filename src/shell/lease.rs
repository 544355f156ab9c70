//! Who leads, where only one is to work: whoever holds a Lease.
//!
//! The usual rules of Kubernetes' leader election: the holder renews; who wants to hold it waits until it was
//! not renewed for as long as it lasts, by the own clock from when that was first seen, so that clocks
//! need not agree; every write has the version that was read as its precondition.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::desk::{Desk, now};
use super::executor::encoded;
use super::failure::Failure;
use super::server::{Call, Refusal, Server};

/// The Lease that decides who works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The logical cluster in which it is: of a kcp with several shards, one of this shard, such as `system:admin`.
    pub cluster: String,
    /// The namespace in which it is. It has to exist: while a kcp starts and waits for its bindings, only
    /// `system:admin` has one, `default`.
    pub namespace: String,
    /// Its name: one for each shard.
    pub name: String,
    /// Who wants to hold it: another name for each process.
    pub identity: String,
    /// How long it lasts without being renewed, in whole seconds: after that another one may take it.
    pub duration: Duration,
}

/// Who runs for it.
pub(super) struct Candidate {
    pub lease: Lease,
    pub server: Server,
    pub desk: Arc<Desk>,
    /// What was seen of another one's holding, and when that was first seen.
    seen: Option<(Value, Instant)>,
    /// Until when it is ours without being renewed.
    held_until: Option<Instant>,
}

impl Candidate {
    pub fn new(lease: Lease, server: Server, desk: Arc<Desk>) -> Self {
        Self { lease, server, desk, seen: None, held_until: None }
    }

    /// How often it is looked at, and renewed.
    fn period(&self) -> Duration {
        self.lease.duration / 7
    }

    /// So much of a time, but not beyond the moment at which it is ours no longer: a server that does not answer
    /// must not make us miss it.
    fn at_most(&self, time: Duration) -> Duration {
        self.held_until.map_or(time, |until| time.min(until.saturating_duration_since(Instant::now())))
    }

    /// Runs until the future is dropped.
    ///
    /// # Errors
    /// 403: Leases are not for us.
    pub async fn run(&mut self) -> Result<std::convert::Infallible, Failure> {
        loop {
            let period = self.period();
            // Two thirds of the time it lasts: whoever takes it over comes after we have stopped.
            let patience = self.lease.duration * 2 / 3;
            let began = Instant::now();
            match timeout(self.at_most(period.max(Duration::from_secs(1))), self.try_hold()).await {
                Ok(Ok(true)) => {
                    self.held_until = Some(began + patience);
                    if !self.desk.is_leading() {
                        tracing::info!(lease = %self.lease.name, identity = %self.lease.identity, "leading");
                    }
                    self.desk.lead(true);
                }
                Ok(Ok(false)) => self.step_down("another one holds the lease"),
                Ok(Err(Refusal::Status(status))) if status.code == Some(403) => {
                    let what = format!("leases of {}", self.path());
                    let message = status.message.unwrap_or_default();
                    return Err(Failure::Forbidden { what, message });
                }
                Ok(Err(why)) => tracing::warn!(%why, "cannot look at the lease"),
                Err(_) => tracing::warn!("cannot look at the lease: no answer"),
            }
            self.look_at_the_clock();
            sleep(self.at_most(period)).await;
            self.look_at_the_clock();
        }
    }

    /// Looks at the clock while what is under way comes to its end, and renews nothing any more.
    pub async fn run_out(&mut self) -> std::convert::Infallible {
        if let Some(until) = self.held_until {
            sleep_until(until).await;
            self.look_at_the_clock();
        }
        std::future::pending().await
    }

    fn look_at_the_clock(&mut self) {
        if self.held_until.is_some_and(|until| Instant::now() >= until) {
            self.step_down("the lease could not be renewed in time");
        }
    }

    fn step_down(&mut self, why: &str) {
        if self.held_until.take().is_some() {
            tracing::warn!(why, "not leading any more");
            self.desk.lead(false);
        }
    }

    fn path(&self) -> String {
        let Lease { cluster, namespace, .. } = &self.lease;
        format!("/clusters/{}/apis/coordination.k8s.io/v1/namespaces/{}/leases", encoded(cluster), encoded(namespace))
    }

    async fn get(&self) -> Result<Option<Value>, Refusal> {
        let path = format!("{}/{}", self.path(), encoded(&self.lease.name));
        match self.server.ask(Call::get(&path), self.lease.duration).await {
            Ok(body) => Ok(Some(serde_json::from_slice(&body).map_err(Refusal::no_answer)?)),
            Err(Refusal::Status(status)) if status.code == Some(404) => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// Writes it; false if somebody was quicker.
    async fn put(&self, method: Method, path: &str, lease: &Value) -> Result<bool, Refusal> {
        let call =
            Call { method, path, content_type: "application/json", body: Bytes::from(lease.to_string().into_bytes()) };
        match self.server.ask(call, self.lease.duration).await {
            Ok(_) => Ok(true),
            Err(Refusal::Status(status)) if status.code == Some(409) => Ok(false),
            Err(why) => Err(why),
        }
    }

    /// Takes it, or renews it. False: another one has it.
    async fn try_hold(&mut self) -> Result<bool, Refusal> {
        let time = now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
        let duration = self.lease.duration.as_secs();
        let Some(mut lease) = self.get().await? else {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": self.lease.name, "namespace": self.lease.namespace},
                "spec": {
                    "holderIdentity": self.lease.identity,
                    "leaseDurationSeconds": duration,
                    "acquireTime": time,
                    "renewTime": time,
                    "leaseTransitions": 0,
                },
            });
            return self.put(Method::POST, &self.path(), &lease).await;
        };
        let spec = lease.get("spec").cloned().unwrap_or_default();
        let holder = spec.get("holderIdentity").and_then(Value::as_str).unwrap_or_default();
        let is_ours = holder == self.lease.identity;
        if !is_ours && !holder.is_empty() && !self.is_over(&spec) {
            return Ok(false);
        }
        let transitions = spec.get("leaseTransitions").and_then(Value::as_i64).unwrap_or(0);
        let mut next = spec;
        if let Some(next) = next.as_object_mut() {
            next.insert("holderIdentity".into(), json!(self.lease.identity));
            next.insert("leaseDurationSeconds".into(), json!(duration));
            next.insert("renewTime".into(), json!(time));
            if !is_ours {
                next.insert("acquireTime".into(), json!(time));
                next.insert("leaseTransitions".into(), json!(transitions + 1));
            }
        } else {
            next = json!({"holderIdentity": self.lease.identity, "leaseDurationSeconds": duration, "renewTime": time});
        }
        if let Some(lease) = lease.as_object_mut() {
            lease.insert("spec".into(), next);
        }
        let path = format!("{}/{}", self.path(), encoded(&self.lease.name));
        match self.put(Method::PUT, &path, &lease).await {
            // It need not have been somebody who wants to hold it. Whoever holds it now is seen next time.
            Ok(false) if is_ours => Err(Refusal::no_answer("somebody has written the lease meanwhile")),
            written => written,
        }
    }

    /// Whether another one's holding is over: it has not changed for as long as it lasts.
    fn is_over(&mut self, spec: &Value) -> bool {
        let lasts =
            spec.get("leaseDurationSeconds").and_then(Value::as_u64).map_or(self.lease.duration, Duration::from_secs);
        match &self.seen {
            Some((seen, since)) if seen == spec => since.elapsed() >= lasts,
            _ => {
                self.seen = Some((spec.clone(), Instant::now()));
                false
            }
        }
    }

    /// Gives it up, so that another one need not wait.
    pub async fn give_up(&mut self) {
        self.desk.lead(false);
        if self.held_until.take().is_none() {
            return;
        }
        let given = async {
            let Some(mut lease) = self.get().await? else { return Ok(false) };
            let spec = lease.get_mut("spec").and_then(Value::as_object_mut);
            let Some(spec) = spec.filter(|spec| spec.get("holderIdentity") == Some(&json!(self.lease.identity))) else {
                return Ok(false);
            };
            spec.insert("holderIdentity".into(), json!(""));
            spec.insert("leaseDurationSeconds".into(), json!(1));
            let path = format!("{}/{}", self.path(), encoded(&self.lease.name));
            self.put(Method::PUT, &path, &lease).await
        };
        match given.await {
            Ok(true) => tracing::info!("the lease is given up"),
            Ok(false) => {}
            Err(why) => tracing::warn!(%why, "the lease could not be given up: it will run out"),
        }
    }
}
