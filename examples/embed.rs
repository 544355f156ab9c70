//! The whole controller in another program, with an executor made by hand: a pretended server that
//! keeps its objects in a map.
//!
//!     cargo run --example embed

#![allow(clippy::indexing_slicing)] // of JSON values: what is missing is null
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // a program has a clock, the library has none

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, SystemTime};

use apibinding::api::{BindingKey, Object, Phase};
use apibinding::effect::{Effect, Outcome};
use apibinding::pass::{Pass, Step};
use apibinding::queue::Queue;
use apibinding::snapshot::{Change, Layout, Snapshot};
use apibinding::wakeup::wakeup;
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let mut controller = Controller { snapshot: Snapshot::new(Layout::Split), queue: Queue::default() };
    let mut server = Server::default();
    controller.see(server.load(world())?);
    while let Some(key) = controller.queue.take(now()) {
        controller.snapshot.set_unix_time(i64::try_from(now().as_secs())?);
        let mut pass = Pass::new(key.clone());
        let retry = loop {
            match pass.poll(&controller.snapshot) {
                Step::Act(effect) => {
                    println!("{effect}");
                    controller.see(pass.observe(server.carry_out(&effect)?));
                    controller.see(server.establish(&effect)?);
                }
                Step::Done(retry) => break retry,
                _ => return Err("a step that this example does not know".into()),
            }
        };
        let next = retry.next(|time| Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default()));
        controller.queue.finish(&key, next, now());
    }
    let key = "meadow|geese".parse()?;
    let binding = controller.snapshot.binding(&key).ok_or("the binding is gone")?;
    println!("{key} is {}", binding.status.phase);
    (binding.status.phase == Phase::Bound).then_some(()).ok_or_else(|| "and should be Bound".into())
}

/// The queue's clock: the time since 1970.
fn now() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}

struct Controller {
    snapshot: Snapshot,
    queue: Queue<BindingKey>,
}

impl Controller {
    /// Takes in what was seen, by a watch or in an answer, and queues whom it concerns.
    fn see(&mut self, changes: impl IntoIterator<Item = Change>) {
        for change in changes {
            let applied = self.snapshot.apply(change);
            wakeup(&self.snapshot, &applied).into_iter().for_each(|key| self.queue.add(key));
        }
    }
}

/// Objects by kind, cluster and name.
#[derive(Default)]
struct Server {
    objects: BTreeMap<String, Value>,
    version: u64,
}

impl Server {
    fn load(&mut self, objects: Vec<Value>) -> Result<Vec<Change>, Box<dyn Error>> {
        objects.into_iter().map(|object| self.merge(object).map(Change::put)).collect()
    }

    /// What a server does with an effect.
    fn carry_out(&mut self, effect: &Effect) -> Result<Outcome, Box<dyn Error>> {
        let (cluster, body) = match effect {
            Effect::CreateCrd(create) => (&create.cluster, &create.body),
            Effect::PatchLogicalCluster(patch) | Effect::PatchApiBindingStatus(patch) => (&patch.cluster, &patch.body),
            _ => return Ok(Outcome::NoAnswer("this server answers no questions".into())),
        };
        let mut body = body.to_value();
        body["metadata"]["annotations"]["kcp.io/cluster"] = json!(cluster);
        Ok(Outcome::done(self.merge(body)?))
    }

    /// What a server does with a CRD, some time after it was created.
    fn establish(&mut self, effect: &Effect) -> Result<Option<Change>, Box<dyn Error>> {
        let Effect::CreateCrd(create) = effect else { return Ok(None) };
        let mut crd = create.body.to_value();
        let conditions = ["NamesAccepted", "Established"].map(|kind| json!({"type": kind, "status": "True"}));
        crd["status"] =
            json!({"conditions": conditions, "acceptedNames": crd["spec"]["names"], "storedVersions": ["v1"]});
        Ok(Some(Change::put(self.merge(crd)?)))
    }

    fn merge(&mut self, object: Value) -> Result<Object, Box<dyn Error>> {
        let key = Object::from_typed_json(&object.to_string())?;
        let known = self.objects.entry(format!("{} {}", key.kind(), key.key())).or_default();
        merge(known, object);
        self.version += 1;
        known["metadata"]["resourceVersion"] = json!(self.version.to_string());
        Ok(Object::from_typed_json(&known.to_string())?)
    }
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            from.into_iter().for_each(|(name, value)| merge(into.entry(name).or_insert(Value::Null), value));
        }
        (into, from) => *into = from,
    }
}

/// A provider, `farm`, offers geese; a consumer, `meadow`, binds them.
fn world() -> Vec<Value> {
    let metadata = |name: &str, cluster: &str| json!({"name": name, "uid": format!("{cluster}-{name}"), "annotations": {"kcp.io/cluster": cluster}});
    vec![
        json!({"apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster", "metadata": metadata("cluster", "meadow")}),
        json!({
            "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": metadata("v1.geese.farm.example", "farm"),
            "spec": {
                "group": "farm.example", "scope": "Namespaced",
                "names": {"plural": "geese", "singular": "goose", "kind": "Goose", "listKind": "GooseList"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"type": "object"}}],
            },
        }),
        json!({
            "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": metadata("geese", "farm"),
            "spec": {"resources": [
                {"name": "geese", "group": "farm.example", "schema": "v1.geese.farm.example", "storage": {"crd": {}}},
            ]},
            "status": {"identityHash": "h0nk"},
        }),
        json!({
            "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": metadata("geese", "meadow"),
            "spec": {"reference": {"export": {"path": "farm", "name": "geese"}}},
        }),
    ]
}
