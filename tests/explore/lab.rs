//! What the library answers, each question asked once.
//!
//! All of it is a function of its arguments. So the search gives numbers to objects, snapshots and passes,
//! and looks up what it has asked before: a state is a handful of numbers, and a step costs a look-up.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use apibinding::api::{BindingKey, ClusterName, Kind, Object};
use apibinding::effect::{Effect, Outcome, Patch, Retry};
use apibinding::pass::{Pass, Step};
use apibinding::snapshot::{Change, Origin, Snapshot};
use apibinding::wakeup::{all, wakeup};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;

use super::world::{self, BIRDS, BOUND, HOME, OWN, SLOTS};

/// A hasher that gives the same in every run, in two lanes: 128 bits tell states apart.
#[derive(Default)]
pub struct Mix(u64, u64);

impl Mix {
    pub fn of(value: &impl Hash) -> u128 {
        let mut mix = Self::default();
        value.hash(&mut mix);
        u128::from(mix.0) << 64 | u128::from(mix.finish())
    }
}

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        bytes.chunks(8).for_each(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        });
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(29) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.1 = (self.1 ^ value.wrapping_add(self.0 >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(32);
    }

    fn finish(&self) -> u64 {
        (self.1 ^ self.0 >> 29).wrapping_mul(0xff51_afd7_ed55_8ccd)
    }
}

pub type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// The number of a thing, a snapshot or a pass.
pub type Id = u32;

/// An object at a version, or that it is gone at that version.
#[derive(Clone, Debug, PartialEq)]
pub struct Thing {
    pub slot: usize,
    /// How often this name was written: it goes on where an object is deleted and made again. Two
    /// writes to two objects give the same state in either order.
    pub version: u32,
    pub object: Option<Object>,
}

/// What came of a request. `Done` and `Conflict` name the thing that the answer tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    Done(Id),
    Conflict(Id),
    NotFound,
    AlreadyExists,
    Lost,
}

/// What a poll gave: another pass with an effect to carry out, or an end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Polled {
    Acts(Id),
    Ends,
    /// At once, or after a back-off: there is no time here but the clock of CRD locks.
    EndsToReturn,
    /// When the clock goes on.
    EndsToWait,
}

struct Known {
    things: [Id; SLOTS],
    snapshot: Snapshot,
}

pub struct Lab {
    birds: Vec<BindingKey>,
    pub things: Vec<Thing>,
    things_at: Map<(usize, u32), Vec<Id>>,
    snapshots: Vec<Known>,
    snapshot_of: Map<[Id; SLOTS], Id>,
    passes: Vec<(Pass, Option<Effect>)>,
    pass_of: Map<String, Id>,
    polled: Map<(Id, Id, u8), Polled>,
    served: Map<(Id, Id), (Answer, Id)>,
    observed: Map<(Id, Answer), (Id, Option<Id>)>,
    learnt: Map<(Id, Id), (Id, u8)>,
    /// Law `exclusive`, its second half: set when a plan breaks it.
    pub broken: Option<String>,
}

impl Lab {
    /// `base`: a snapshot of what never changes.
    pub fn new(base: Snapshot, birds: Vec<BindingKey>) -> Self {
        let mut lab = Self {
            birds,
            things: Vec::new(),
            things_at: Map::default(),
            snapshots: Vec::new(),
            snapshot_of: Map::default(),
            passes: Vec::new(),
            pass_of: Map::default(),
            polled: Map::default(),
            served: Map::default(),
            observed: Map::default(),
            learnt: Map::default(),
            broken: None,
        };
        let nothing = std::array::from_fn(|slot| lab.thing(Thing { slot, version: 0, object: None }));
        lab.snapshot_of.insert(nothing, 0);
        lab.snapshots.push(Known { things: nothing, snapshot: base });
        lab
    }

    /// The number of a thing.
    pub fn thing(&mut self, thing: Thing) -> Id {
        let same = self.things_at.entry((thing.slot, thing.version)).or_default();
        if let Some(id) = same.iter().find(|id| self.things[**id as usize] == thing) {
            return *id;
        }
        let id = self.things.len() as Id;
        same.push(id);
        self.things.push(thing);
        id
    }

    /// What follows when an object is written; the same as before, no write.
    pub fn write(&mut self, before: Id, object: Option<Object>) -> Id {
        let Thing { slot, version, object: old } = &self.things[before as usize];
        if *old == object {
            return before;
        }
        let (slot, version) = (*slot, version + 1);
        let mut object = object;
        if let Some(object) = &mut object {
            object.metadata_mut().resource_version = Some(version.to_string());
        }
        self.thing(Thing { slot, version, object })
    }

    pub fn object(&self, thing: Id) -> Option<&Object> {
        self.things[thing as usize].object.as_ref()
    }

    pub fn effect(&self, pass: Id) -> &Effect {
        self.passes[pass as usize].1.as_ref().unwrap()
    }

    pub fn key(&self, pass: Id) -> &BindingKey {
        self.passes[pass as usize].0.key()
    }

    pub fn known(&self, snapshot: Id) -> &[Id; SLOTS] {
        &self.snapshots[snapshot as usize].things
    }

    pub fn bird(&self, key: &BindingKey) -> usize {
        self.birds.iter().position(|bird| bird == key).unwrap()
    }

    /// A start from lists: a snapshot of what the server has, and the keys of all that is to be done.
    pub fn start(&mut self, server: &[Id; SLOTS]) -> (Id, u8) {
        let snapshot = server.iter().fold(0, |snapshot, thing| self.learn(snapshot, *thing).0);
        (snapshot, self.mask(&all(&self.snapshots[snapshot as usize].snapshot)))
    }

    fn mask(&self, keys: &[BindingKey]) -> u8 {
        keys.iter().fold(0, |mask, key| mask | 1 << self.bird(key))
    }

    /// Applies what was heard of a thing: the snapshot after that, and whom it wakes.
    ///
    /// A snapshot is told by which things it knows, by law `late`; here that law is asked again whenever
    /// two ways lead to the same knowledge.
    pub fn learn(&mut self, snapshot: Id, thing: Id) -> (Id, u8) {
        if let Some(learnt) = self.learnt.get(&(snapshot, thing)) {
            return *learnt;
        }
        let known = &self.snapshots[snapshot as usize];
        let news = &self.things[thing as usize];
        let age = |thing: &Thing| (thing.version, thing.object.is_none());
        let is_news = age(&self.things[known.things[news.slot] as usize]) < age(news);
        let mut after = known.snapshot.clone();
        let applied = after.apply(match &news.object {
            Some(object) => Change::put(object.clone()),
            None => {
                let (kind, key) = world::name(news.slot);
                Change::Delete { origin: Origin::Local, kind, key, resource_version: news.version.to_string().into() }
            }
        });
        let learnt = if is_news {
            let mut things = known.things;
            things[news.slot] = thing;
            let woken = self.mask(&wakeup(&after, &applied));
            (self.snapshot(things, after), woken)
        } else {
            assert!(applied.is_empty(), "an old {news:?} is news");
            (snapshot, 0)
        };
        self.learnt.insert((snapshot, thing), learnt);
        learnt
    }

    fn snapshot(&mut self, things: [Id; SLOTS], snapshot: Snapshot) -> Id {
        if let Some(id) = self.snapshot_of.get(&things) {
            assert!(self.snapshots[*id as usize].snapshot == snapshot, "one knowledge, two snapshots");
            return *id;
        }
        let id = self.snapshots.len() as Id;
        self.snapshot_of.insert(things, id);
        self.snapshots.push(Known { things, snapshot });
        id
    }

    /// A new pass over a binding.
    pub fn begin(&mut self, bird: usize) -> Id {
        let pass = Pass::new(self.birds[bird].clone());
        self.pass(pass, None)
    }

    fn pass(&mut self, pass: Pass, effect: Option<Effect>) -> Id {
        // What it planned last it only tells, and never reads: two passes that differ in that are one.
        let text = format!("{pass:?}");
        let (start, end) = (text.find(", planned: ").unwrap(), text.rfind(", retry: ").unwrap());
        let text = [&text[..start], &text[end..]].concat();
        *self.pass_of.entry(text).or_insert_with(|| {
            self.passes.push((pass, effect));
            self.passes.len() as Id - 1
        })
    }

    pub fn poll(&mut self, pass: Id, snapshot: Id, clock: u8) -> Polled {
        if let Some(polled) = self.polled.get(&(pass, snapshot, clock)) {
            return *polled;
        }
        let mut after = self.passes[pass as usize].0.clone();
        let mut seen = self.snapshots[snapshot as usize].snapshot.clone();
        seen.set_unix_time(world::time(clock));
        let polled = match after.poll(&seen) {
            Step::Act(effect) => {
                if let Effect::PatchApiBindingStatus(patch) = &effect {
                    self.broken = self.broken.take().or(binds_a_crd(&seen, after.key(), patch));
                }
                Polled::Acts(self.pass(after, Some(effect)))
            }
            Step::Done(Retry::Forget) => Polled::Ends,
            Step::Done(Retry::Now | Retry::Backoff { .. }) => Polled::EndsToReturn,
            Step::Done(Retry::After(_)) => Polled::EndsToWait,
            step => panic!("unknown step {step:?}"),
        };
        self.polled.insert((pass, snapshot, clock), polled);
        polled
    }

    /// The server carries out the effect of a pass.
    pub fn serve(&mut self, pass: Id, server: &mut [Id; SLOTS]) -> Answer {
        let effect = self.effect(pass);
        let slot = match effect {
            Effect::CreateCrd(_) => BOUND,
            Effect::ReadApiBinding(key) => BIRDS + self.bird(key),
            Effect::ReadCrd(_) => OWN,
            Effect::PatchLogicalCluster(_) => HOME,
            Effect::PatchApiBindingStatus(patch) => {
                BIRDS + self.bird(&BindingKey::new(patch.cluster.clone(), patch.name.clone()))
            }
            other => panic!("no effect to carry out: {other}"),
        };
        let before = server[slot];
        if let Some((answer, after)) = self.served.get(&(pass, before)) {
            server[slot] = *after;
            return *answer;
        }
        let object = self.object(before);
        let (answer, after) = match (effect.clone(), object) {
            (Effect::CreateCrd(_), Some(_)) => (Answer::AlreadyExists, before),
            (Effect::CreateCrd(create), None) => {
                let mut crd = Object::from_json(Kind::Crd, create.body.as_str()).unwrap();
                crd.metadata_mut().uid = Some(format!("made-{before}"));
                let after = self.write(before, Some(crd));
                (Answer::Done(after), after)
            }
            (_, None) => (Answer::NotFound, before),
            (Effect::ReadApiBinding(_) | Effect::ReadCrd(_), Some(_)) => (Answer::Done(before), before),
            (Effect::PatchLogicalCluster(patch) | Effect::PatchApiBindingStatus(patch), Some(object)) => {
                let version = object.metadata().resource_version.as_deref();
                if !patch.resource_version.is_empty() && version != Some(&*patch.resource_version) {
                    (Answer::Conflict(before), before)
                } else {
                    let object = applied(object.clone(), &patch);
                    let after = self.write(before, Some(object));
                    (Answer::Done(after), after)
                }
            }
            (other, _) => panic!("no effect to carry out: {other}"),
        };
        self.served.insert((pass, before), (answer, after));
        server[slot] = after;
        answer
    }

    /// A pass takes in an answer: the pass after that, and what it tells of the world.
    pub fn observe(&mut self, pass: Id, answer: Answer) -> (Id, Option<Id>) {
        if let Some(observed) = self.observed.get(&(pass, answer)) {
            return *observed;
        }
        let (outcome, thing) = match answer {
            Answer::Done(thing) => (Outcome::done(self.object(thing).unwrap().clone()), Some(thing)),
            Answer::Conflict(thing) => {
                let current = self.object(thing).cloned().map(Box::new);
                (Outcome::Conflict { status: status("Conflict"), current }, Some(thing))
            }
            Answer::NotFound => (Outcome::Refused(status("NotFound")), None),
            Answer::AlreadyExists => (Outcome::Refused(status("AlreadyExists")), None),
            Answer::Lost => (Outcome::NoAnswer("lost".into()), None),
        };
        let mut after = self.passes[pass as usize].0.clone();
        let changes = after.observe(outcome);
        let told = thing.filter(|_| !changes.is_empty());
        for change in &changes {
            let Change::Put { object, .. } = change else { panic!("{change:?} tells of nothing that is there") };
            assert_eq!(Some(&**object), told.and_then(|thing| self.object(thing)));
        }
        let observed = (self.pass(after, None), told);
        self.observed.insert((pass, answer), observed);
        observed
    }
}

fn status(reason: &str) -> Box<Status> {
    Box::new(Status { reason: Some(reason.into()), message: Some(reason.into()), ..Status::default() })
}

fn applied(mut object: Object, patch: &Patch) -> Object {
    let body = patch.body.to_value();
    match &mut object {
        Object::ApiBinding(binding) => binding.status = serde_json::from_value(body["status"].clone()).unwrap(),
        other => {
            let annotations = other.metadata_mut().annotations.get_or_insert_default();
            for (name, text) in body["metadata"]["annotations"].as_object().unwrap() {
                annotations.insert(name.clone(), text.as_str().unwrap().into());
            }
        }
    }
    object
}

/// Law `exclusive`: no binding newly lists a resource that a CRD in its snapshot has as an accepted, or
/// not yet judged, plural.
fn binds_a_crd(seen: &Snapshot, key: &BindingKey, patch: &Patch) -> Option<String> {
    let crd = seen.crd(&ClusterName::from(world::MEADOW), world::RESOURCE)?;
    let plural = if crd.names_judged { &crd.accepted_names.plural } else { &crd.names.plural };
    let bound = |status: &serde_json::Value| status["boundResources"].as_array().is_some_and(|list| !list.is_empty());
    let newly = bound(&patch.body.to_value()["status"]) && seen.binding(key)?.status.bound_resources.is_empty();
    (newly && !plural.is_empty()).then(|| format!("{key} is to list what it sees that a CRD of the workspace has"))
}
