//! The core inside a kube program that has a loop of its own: kube's watchers feed the snapshot, the loop plans, and
//! `shell::Executor` sends what comes of it. To run anywhere, it brings a simulated kcp along.
//!
//! ```sh
//! cargo run --example kube_controller --features latest,shell,sim
//! ```
//!
//! `shell::Controller` does all of this, and more: kube's watchers hide the versions of lists and bookmarks, by which
//! the snapshot knows that something is late; several workers; leases, metrics, a stop.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // a program has a clock

use std::fmt::Debug;
use std::time::{Duration, Instant};

use apibinding::api::{
    ApiBinding, ApiConversion, ApiExport, ApiResourceSchema, Kind, LogicalCluster, Object, ObservedCrd,
};
use apibinding::front::{Front, Settings};
use apibinding::pass::{Pass, Step};
use apibinding::queue::Queue;
use apibinding::shell::Executor;
use apibinding::sim::{Builder, Kcp};
use apibinding::snapshot::{Change, Layout, Origin, Snapshot};
use apibinding::wakeup;
use futures_util::stream::{BoxStream, StreamExt, select_all};
use kube::runtime::watcher::{Config as Watch, Event, watcher};
use kube::{Api, Client, Config};
use serde::de::DeserializeOwned;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// What a watcher of one kind tells, as changes of the snapshot.
fn changes<K>(client: Client, origin: Origin, kind: Kind) -> BoxStream<'static, Change>
where
    K: kube::Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Into<Object> + 'static,
{
    let mut listed: Vec<Object> = Vec::new();
    let told = watcher(Api::<K>::all(client), Watch::default()).filter_map(move |event| {
        let change = match event {
            Ok(Event::Init) => {
                listed.clear();
                None
            }
            Ok(Event::InitApply(object)) => {
                listed.push(object.into());
                None
            }
            // kube does not tell the version of the list: it counts as newer than all that is known.
            Ok(Event::InitDone) => {
                let objects = std::mem::take(&mut listed);
                Some(Change::List { origin, kind, objects, resource_version: "".into() })
            }
            Ok(Event::Apply(object)) => Some(Change::Put { origin, object: Box::new(object.into()) }),
            Ok(Event::Delete(object)) => {
                let object = object.into();
                let resource_version = object.metadata().resource_version.as_deref().unwrap_or_default().into();
                Some(Change::Delete { origin, kind, key: object.key(), resource_version })
            }
            Err(why) => {
                eprintln!("{kind}: {why}"); // the watcher tries again
                None
            }
        };
        std::future::ready(change)
    });
    told.boxed()
}

/// A client whose requests begin with this path.
fn client(front: &Front, path: &str) -> Result<Client, Error> {
    let mut config = Config::new(format!("{}{path}", front.url()).parse()?);
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut kcp = Kcp::new(7);
    kcp.load(Origin::Local, Builder::new(7).layout(Layout::Single).crowded(false).workspaces(2).bindings(10).build());
    let settings = Settings { establishing: Duration::from_millis(100), ..Settings::default() };
    let front = Front::serve(kcp, settings)?;

    // All logical clusters, of the server and of its cache server.
    let (all, cache) = (client(&front, "/clusters/*")?, client(&front, "/services/cache/shards/*/clusters/*")?);
    let streams = [
        changes::<LogicalCluster>(all.clone(), Origin::Local, Kind::LogicalCluster),
        changes::<ApiBinding>(all.clone(), Origin::Local, Kind::ApiBinding),
        changes::<ApiExport>(all.clone(), Origin::Local, Kind::ApiExport),
        changes::<ApiResourceSchema>(all.clone(), Origin::Local, Kind::ApiResourceSchema),
        changes::<ApiConversion>(all.clone(), Origin::Local, Kind::ApiConversion),
        changes::<ObservedCrd>(all, Origin::Local, Kind::Crd),
        changes::<ApiExport>(cache.clone(), Origin::Global, Kind::ApiExport),
        changes::<ApiResourceSchema>(cache.clone(), Origin::Global, Kind::ApiResourceSchema),
        changes::<ApiConversion>(cache, Origin::Global, Kind::ApiConversion),
    ];
    let mut lists = streams.len();
    let mut told = select_all(streams);

    let executor = Executor::new(client(&front, "")?, Duration::from_secs(30));
    let mut snapshot = Snapshot::new(Layout::Single);
    let mut queue = Queue::default();
    let origin = Instant::now();
    loop {
        // Nothing is processed before all lists are in; then everything is.
        let wait = queue.next_due().map_or(Duration::from_secs(1), |due| due.saturating_sub(origin.elapsed()));
        let change = tokio::time::timeout(wait, told.next()).await;
        if let Ok(Some(change)) = change {
            let is_list = matches!(change, Change::List { .. });
            let applied = snapshot.apply(change);
            if lists == 0 {
                wakeup::wakeup(&snapshot, &applied).into_iter().for_each(|key| queue.add(key));
            } else if is_list {
                lists -= 1;
                if lists == 0 {
                    wakeup::all(&snapshot).into_iter().for_each(|key| queue.add(key));
                }
            }
        } else if front.is_at_rest() && queue.is_empty() && queue.next_due().is_none() {
            break; // nothing has happened for a while: another program would go on
        }
        while let Some(key) = queue.take(origin.elapsed()) {
            let mut pass = Pass::new(key.clone());
            let retry = loop {
                snapshot.set_now(std::time::SystemTime::now().try_into()?);
                match pass.poll(&snapshot) {
                    Step::Done(retry) => break retry,
                    Step::Act(effect) => {
                        let outcome = executor.execute(&effect).await;
                        println!("{key}: {effect}: {outcome}");
                        for change in pass.observe(outcome) {
                            let applied = snapshot.apply(change);
                            wakeup::wakeup(&snapshot, &applied).into_iter().for_each(|key| queue.add(key));
                        }
                    }
                    _ => unreachable!("there are no other steps yet"),
                }
            };
            let next = retry.next(|time| {
                let wait = Duration::try_from(time.duration_since(snapshot.now())).unwrap_or_default();
                origin.elapsed() + wait
            });
            queue.finish(&key, next, origin.elapsed());
        }
    }
    let bound = snapshot
        .bindings()
        .iter()
        .filter(|key| snapshot.binding(key).is_some_and(|binding| binding.status.phase.as_str() == "Bound"))
        .count();
    println!("{bound} of {} are bound", snapshot.bindings().len());
    Ok(())
}
