//! Passes whose answers are known, so that the controller can be measured without its server.

use apibinding::api::{BindingKey, Kind, Object, Phase};
use apibinding::effect::{Effect, Outcome};
use apibinding::pass::{Pass, Step};
use apibinding::sim::{Builder, Kcp, Request};
use apibinding::snapshot::{Change, Origin, Snapshot};
use apibinding::wakeup::wakeup;
use serde_json::{Value, json};

use super::World;

/// What a server did about one effect.
#[derive(Clone)]
struct Answer {
    outcome: Outcome,
    /// What came of it by and by, such as a CRD that serves.
    later: Vec<Change>,
}

/// One binding that is new to a world, and all that its server answers on the way.
#[derive(Clone)]
pub struct Rehearsal {
    pub snapshot: Snapshot,
    pub key: BindingKey,
    answers: Vec<Answer>,
}

/// What a [`Rehearsal`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Played {
    pub effects: usize,
    pub woken: usize,
}

impl Rehearsal {
    /// A binding in the fleet's first workspace to `flock-<export>`, until nothing is left to do.
    pub fn of(builder: &Builder, export: usize) -> Self {
        let newcomer = newcomer(builder, export);
        let mut world = World::of(builder);
        let mut kcp = Kcp::new(1);
        kcp.set_now(Builder::START);
        kcp.load(Origin::Local, builder.build().chain([newcomer.clone()]));
        let newcomer = Object::from_typed_json(&newcomer.to_string()).expect("a binding");
        let key = newcomer.key();
        world.snapshot.apply(Change::put(newcomer));
        let mut snapshot = world.snapshot.clone();
        let mut answers = Vec::new();
        loop {
            let before = answers.len();
            let mut pass = Pass::new(key.clone());
            while let Step::Act(effect) = pass.poll(&snapshot) {
                let outcome = kcp.execute(&effect);
                pass.observe(outcome.clone()).into_iter().for_each(|change| drop(snapshot.apply(change)));
                let later: Vec<Change> = establish(&mut kcp, &effect).into_iter().collect();
                later.iter().for_each(|change| drop(snapshot.apply(change.clone())));
                answers.push(Answer { outcome, later });
            }
            if answers.len() == before {
                break;
            }
        }
        Self { snapshot: world.snapshot, key, answers }
    }

    /// Plays it again: plans, takes in what is answered, and asks who is to be woken.
    pub fn play(self) -> (Self, Played) {
        let Self { mut snapshot, key, answers } = self;
        let mut played = Played { effects: 0, woken: 0 };
        let mut take_in = |snapshot: &mut Snapshot, changes: Vec<Change>| {
            for change in changes {
                let applied = snapshot.apply(change);
                played.woken += wakeup(snapshot, &applied).len();
            }
        };
        let mut answers = answers.into_iter();
        let mut pass = Pass::new(key.clone());
        loop {
            match pass.poll(&snapshot) {
                Step::Act(_) => {
                    let Answer { outcome, later } = answers.next().expect("the rehearsal went the same way");
                    take_in(&mut snapshot, pass.observe(outcome));
                    take_in(&mut snapshot, later);
                    played.effects += 1;
                }
                _ if answers.len() > 0 => pass = Pass::new(key.clone()),
                _ => break,
            }
        }
        // What was used up is given back, so that to drop it is not measured.
        (Self { snapshot, key, answers: Vec::new() }, played)
    }

    /// The phase that the binding has in the snapshot.
    pub fn phase(&self) -> &Phase {
        &self.snapshot.binding(&self.key).expect("the newcomer is there").status.phase
    }
}

/// A binding that nobody has looked at yet, in the workspace of the fleet's first one.
fn newcomer(builder: &Builder, export: usize) -> Value {
    let is_binding = |object: &Value| object["kind"] == Kind::ApiBinding.as_str();
    let mut object = builder.build().find(is_binding).expect("a fleet has bindings");
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object["metadata"]["name"] = json!("newcomer");
    object["metadata"]["uid"] = json!("newcomer-0");
    // Above those of the fleet.
    object["metadata"]["resourceVersion"] = json!("1000000000");
    object["spec"]["reference"]["export"]["name"] = json!(format!("flock-{export}"));
    object
}

/// Lets a CRD serve that was just created.
fn establish(kcp: &mut Kcp, effect: &Effect) -> Option<Change> {
    let Effect::CreateCrd(create) = effect else { return None };
    let time = Builder::START.to_string();
    let conditions = ["NamesAccepted", "Established"]
        .map(|kind| json!({"type": kind, "status": "True", "lastTransitionTime": time, "reason": "", "message": ""}));
    let names = create.body.to_value()["spec"]["names"].clone();
    let status = json!({"conditions": conditions, "acceptedNames": names});
    let patch = Request::merge(Kind::Crd, create.cluster.clone(), create.name.clone(), json!({"status": status}));
    let answer = kcp.handle(patch.of_status()).expect("a CRD takes a status");
    Some(Change::put(Object::from_typed_json(&answer.body.to_string()).expect("a CRD")))
}
