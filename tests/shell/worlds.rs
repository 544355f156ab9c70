//! The worlds that are played, and where they come to rest.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use apibinding::api::{CLUSTER_ANNOTATION, ClusterName, Kind};
use apibinding::front::{Front, Settings};
use apibinding::sim::{Builder, Kcp, Scenario, Simulation};
use apibinding::snapshot::{Layer, Layout, Origin};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

/// What a kcp is loaded with.
#[derive(Clone)]
pub struct World {
    pub objects: Vec<Value>,
    pub global: Vec<Value>,
    pub layout: Layout,
}

pub fn now() -> Timestamp {
    Timestamp::try_from(SystemTime::now()).unwrap()
}

pub fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"]["annotations"][name].as_str().unwrap_or_default()
}

fn read(folder: &str) -> World {
    let folder = format!("{}/tests/data/kcp/{folder}", env!("CARGO_MANIFEST_DIR"));
    let mut world = World { objects: Vec::new(), global: Vec::new(), layout: Layout::Single };
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    for file in files {
        let mut text = String::new();
        flate2::read::GzDecoder::new(std::fs::File::open(&file).unwrap()).read_to_string(&mut text).unwrap();
        let mut list: Value = serde_json::from_str(&text).unwrap();
        let (version, kind) =
            (list["apiVersion"].clone(), list["kind"].as_str().unwrap().trim_end_matches("List").to_owned());
        for object in list["items"].as_array_mut().unwrap() {
            object["apiVersion"] = version.clone();
            object["kind"] = json!(kind);
        }
        let is_global = file.file_name().unwrap().to_str().unwrap().starts_with("cache-");
        let objects = if is_global { &mut world.global } else { &mut world.objects };
        objects.extend(list["items"].as_array().unwrap().iter().cloned());
    }
    world
}

impl World {
    /// A kcp that has just started: eight bindings, none of them looked at.
    pub fn bootstrap() -> Self {
        read("bootstrap")
    }

    /// A kcp with bindings of every kind, without what the controller did to them: no status, no locks of
    /// bindings, no bound CRDs.
    pub fn recorded(layout: Layout) -> Self {
        let mut world = Self { layout, ..read("objects") };
        world.objects.retain(|object| annotation(object, CLUSTER_ANNOTATION) != ClusterName::BOUND_CRDS);
        for object in &mut world.objects {
            match object["kind"].as_str().unwrap() {
                "APIBinding" => {
                    object.as_object_mut().unwrap().remove("status");
                }
                "LogicalCluster" => unlock(object, layout),
                _ => {}
            }
            // Whoever owns a field that is gone would be strange.
            object["metadata"].as_object_mut().unwrap().remove("managedFields");
        }
        world
    }

    /// The world of the README.
    pub fn example() -> Self {
        let text = include_str!("../../examples/world.yaml");
        let objects = serde_saphyr::from_multiple(text).unwrap();
        Self { objects, global: Vec::new(), layout: Layout::Split }
    }

    pub fn built(builder: &Builder, layout: Layout) -> Self {
        Self { objects: builder.clone().layout(layout).build().collect(), global: Vec::new(), layout }
    }

    pub fn settings(&self) -> Settings {
        Settings { layout: self.layout, establishing: Duration::from_millis(20), old: None, ..Settings::default() }
    }

    pub fn kcp(&self) -> Kcp {
        let mut kcp = Kcp::new(1);
        kcp.set_now(now());
        kcp.load(Origin::Local, self.objects.iter().cloned());
        kcp.load(Origin::Global, self.global.iter().cloned());
        kcp
    }

    pub fn front(&self) -> Front {
        self.front_with(self.settings())
    }

    pub fn front_with(&self, settings: Settings) -> Front {
        Front::serve(self.kcp(), settings).unwrap()
    }

    /// Where it comes to rest in a simulation in which nothing goes wrong and all laws are asked.
    pub fn simulated(&self) -> End {
        let mut scenario = Scenario::of(1, self.layout, self.objects.clone());
        scenario.global = self.global.clone();
        scenario.start = now();
        let mut world = Simulation::new(&scenario).judged();
        while world.step() {
            assert!(world.counts().steps < 200_000, "the simulation does not come to rest");
        }
        assert_eq!(world.broken(), None);
        End::of(|kind| world.list(kind).cloned().collect())
    }

    /// The same, but for the recorded world in this layout only once.
    pub fn recorded_end(layout: Layout) -> &'static End {
        static ENDS: [OnceLock<End>; 2] = [OnceLock::new(), OnceLock::new()];
        ENDS[usize::from(layout == Layout::Split)].get_or_init(|| Self::recorded(layout).simulated())
    }
}

/// A LogicalCluster as it is when no binding was looked at yet.
fn unlock(home: &mut Value, layout: Layout) {
    let text = annotation(home, Layer::Legacy.annotation()).to_owned();
    let annotations = home["metadata"]["annotations"].as_object_mut().unwrap();
    annotations.remove(Layer::Legacy.annotation());
    let mut locks: Value = serde_json::from_str(&text).unwrap_or(json!({}));
    locks.as_object_mut().unwrap().retain(|_, lock| lock["c"] == true);
    if layout == Layout::Single {
        annotations.insert(Layer::Legacy.annotation().into(), json!(locks.to_string()));
    } else {
        annotations.insert(Layer::Crds.annotation().into(), json!(locks.to_string()));
        annotations.insert(Layer::Bindings.annotation().into(), json!("{}"));
    }
}

/// What stands there when all rest, by logical cluster: without times and versions, in no order, and without
/// locks of bindings that are gone, since it is chance whether somebody came by to remove them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End(BTreeMap<String, BTreeMap<String, Value>>);

impl End {
    pub fn of(list: impl Fn(Kind) -> Vec<Arc<Value>>) -> Self {
        let mut end = BTreeMap::<String, BTreeMap<String, Value>>::new();
        let mut add = |object: &Value, what: Value| {
            let (cluster, kind) = (annotation(object, CLUSTER_ANNOTATION), object["kind"].as_str().unwrap());
            let name = format!("{kind} {}", object["metadata"]["name"].as_str().unwrap());
            end.entry(cluster.to_owned()).or_default().insert(name, what);
        };
        let bindings = list(Kind::ApiBinding);
        let crds: BTreeMap<String, Arc<Value>> = list(Kind::Crd)
            .into_iter()
            .filter(|crd| annotation(crd, CLUSTER_ANNOTATION) == ClusterName::BOUND_CRDS)
            .map(|crd| (crd["metadata"]["name"].as_str().unwrap().to_owned(), crd))
            .collect();
        for binding in &bindings {
            let list = |name: &str| binding["status"][name].as_array().cloned().unwrap_or_default();
            let conditions = list("conditions").into_iter().map(|condition| {
                ["type", "status", "reason"]
                    .map(|field| condition[field].as_str().unwrap_or_default().to_owned())
                    .join(" ")
            });
            let mut conditions: Vec<String> = conditions.collect();
            conditions.sort();
            let bound = list("boundResources").into_iter().map(|bound| {
                let crd = bound["schema"]["UID"].as_str().and_then(|uid| crds.get(uid));
                let is_served = crd.is_some_and(|crd| is_established(crd));
                let name =
                    [&bound["resource"], &bound["group"]].map(|text| text.as_str().unwrap_or_default()).join(".");
                (name, json!({"bound": bound, "served": is_served}))
            });
            let bound: BTreeMap<String, Value> = bound.collect();
            let phase = &binding["status"]["phase"];
            add(binding, json!({"phase": phase, "conditions": conditions, "bound": bound}));
        }
        let lives = |cluster: &str, lock: &Value| {
            let Some(name) = lock["n"].as_str() else { return true };
            bindings.iter().any(|binding| {
                let uid = lock["u"].as_str();
                annotation(binding, CLUSTER_ANNOTATION) == cluster
                    && binding["metadata"]["name"] == name
                    && uid.is_none_or(|uid| binding["metadata"]["uid"] == uid)
            })
        };
        for home in list(Kind::LogicalCluster) {
            let locks = Layer::ALL.map(|layer| {
                let mut locks = serde_json::from_str(annotation(&home, layer.annotation())).unwrap_or(Value::Null);
                if let Value::Object(locks) = &mut locks {
                    locks.retain(|_, lock| lives(annotation(&home, CLUSTER_ANNOTATION), lock));
                }
                locks
            });
            add(&home, json!(locks));
        }
        Self(end)
    }

    pub fn of_front(front: &Front) -> Self {
        front.with(|kcp| Self::of(|kind| kcp.list(Origin::Local, kind, None).cloned().collect()))
    }

    /// How many bindings are bound.
    pub fn bound(&self) -> usize {
        self.0.values().flat_map(BTreeMap::values).filter(|what| what["phase"] == "Bound").count()
    }

    pub fn bindings(&self) -> usize {
        self.0.values().flat_map(BTreeMap::keys).filter(|name| name.starts_with("APIBinding ")).count()
    }

    /// The same, but for workspaces in both of which somebody lost against a neighbour: who comes first is chance.
    #[track_caller]
    pub fn assert_is(&self, expected: &Self, what: &str) {
        let names = |end: &Self| end.0.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(self), names(expected), "{what}");
        for (name, workspace) in &self.0 {
            let is_contested = |end: &Self| json!(end.0[name]).to_string().contains("NamingConflicts");
            if workspace == &expected.0[name] || is_contested(self) && is_contested(expected) {
                continue;
            }
            for (object, found) in workspace {
                let wanted = expected.0[name].get(object);
                assert_eq!(Some(found), wanted, "{what}: {object} in {name}");
            }
            assert_eq!(workspace, &expected.0[name], "{what}: {name}");
        }
    }
}

fn is_established(crd: &Value) -> bool {
    let conditions = crd["status"]["conditions"].as_array();
    conditions
        .is_some_and(|conditions| conditions.iter().any(|it| it["type"] == "Established" && it["status"] == "True"))
}
