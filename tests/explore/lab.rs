//! What the library answers, each question asked once.
//!
//! All of it is a function of its arguments. So the search gives numbers to objects, snapshots and passes,
//! and looks up what it has asked before: a state is a handful of numbers, and a step costs a look-up.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use apibinding::api::{BindingKey, Object};
use apibinding::effect::{Effect, Outcome, Retry};
use apibinding::pass::{Pass, Step};
use apibinding::sim::PRESENT;
use apibinding::sim::laws::{self, Broken, Law, Owners, Reads, Verdict};
use apibinding::snapshot::{Change, Layout, Origin, Snapshot};
use apibinding::wakeup::{all, wakeup};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;

use super::world::{self, BIRDS, BOUND, HOME, OWN, Party, SLOTS, Server};

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
    fn write(&mut self, mut bytes: &[u8]) {
        while let Some((word, rest)) = bytes.split_first_chunk() {
            self.write_u64(u64::from_le_bytes(*word));
            bytes = rest;
        }
        if !bytes.is_empty() {
            self.write_u64(bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
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

    fn write_u128(&mut self, value: u128) {
        self.write_u64(value as u64);
        self.write_u64((value >> 64) as u64);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
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
    things: Server,
    snapshot: Snapshot,
}

pub struct Lab {
    layout: Layout,
    birds: Vec<BindingKey>,
    pub things: Vec<Thing>,
    things_at: Map<(usize, u32), Vec<Id>>,
    snapshots: Vec<Known>,
    snapshot_of: Map<Server, Id>,
    passes: Vec<(Pass, Option<Effect>)>,
    pass_of: Map<String, Id>,
    polled: Map<(Id, Id, u8), Polled>,
    served: Map<(Id, Id), (Answer, Id)>,
    observed: Map<(Id, Answer), (Id, Option<Id>)>,
    learnt: Map<(Id, Id), (Id, u8)>,
    acted: Map<(Server, u8), [(usize, Id); Party::ALL.len()]>,
    owned: Map<[Id; SLOTS - BIRDS], Result<bool, String>>,
    /// A law that did not hold, of those that are asked where something comes up for the first time.
    pub broken: Option<Broken>,
}

impl Lab {
    /// `base`: a snapshot of what never changes.
    pub fn new(base: Snapshot, birds: Vec<BindingKey>) -> Self {
        let mut lab = Self {
            layout: base.layout(),
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
            acted: Map::default(),
            owned: Map::default(),
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

    fn ask(&mut self, law: Law, verdict: Verdict) {
        if let Err(why) = verdict {
            self.broken.get_or_insert(Broken::new(law, why));
        }
    }

    /// What each of the other parties would write, and in which place; what is there, if it has nothing to do.
    pub fn parties(&mut self, server: &Server, clock: u8) -> [(usize, Id); Party::ALL.len()] {
        if let Some(acted) = self.acted.get(&(*server, clock)) {
            return *acted;
        }
        let acted = Party::ALL.map(|party| party.act(self, self.layout, server, clock));
        self.acted.insert((*server, clock), acted);
        acted
    }

    /// Law `exclusive`, its first half: whether any of these bindings lists the resource. `Err`: two do.
    pub fn is_listed(&mut self, birds: [Id; SLOTS - BIRDS]) -> Result<bool, String> {
        if let Some(owned) = self.owned.get(&birds) {
            return owned.clone();
        }
        let mut owners = Owners::default();
        let mut there = birds.iter().filter_map(|bird| self.object(*bird)).map(world::as_binding);
        let owned = there.try_fold(false, |is_listed, bird| {
            owners.note(&bird.key(), Some(&bird.status))?;
            Ok(is_listed || world::lists(bird))
        });
        self.owned.insert(birds, owned.clone());
        owned
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

    pub fn known(&self, snapshot: Id) -> &Server {
        &self.snapshots[snapshot as usize].things
    }

    pub fn bird(&self, key: &BindingKey) -> usize {
        self.birds.iter().position(|bird| bird == key).unwrap()
    }

    /// A start from lists: a snapshot of what the server has, and the keys of all that is to be done.
    pub fn start(&mut self, server: &Server) -> (Id, u8) {
        let snapshot = server.iter().fold(0, |snapshot, thing| self.learn(snapshot, *thing).0);
        (snapshot, self.all(snapshot))
    }

    /// The keys that a start has to process.
    pub fn all(&self, snapshot: Id) -> u8 {
        self.mask(&all(&self.snapshots[snapshot as usize].snapshot))
    }

    fn mask(&self, keys: &[BindingKey]) -> u8 {
        keys.iter().fold(0, |mask, key| mask | 1 << self.bird(key))
    }

    /// Applies what was heard of a thing: the snapshot after that, and whom it wakes.
    ///
    /// A snapshot is told by which things it knows, by law `late`; here that law is asked again whenever
    /// two ways lead to the same knowledge. So are `woken` of all that can be learnt, and `indexed` and
    /// `settles` of all that can be known.
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
            let woken = wakeup(&after, &applied);
            let (then, now) = (self.model(&known.things), self.model(&things));
            let verdict = laws::woken((&known.snapshot, &then), (&after, &now), &woken);
            self.ask(Law::Woken, verdict);
            let woken = self.mask(&woken);
            (self.snapshot(things, after, &now), woken)
        } else {
            let is_late = applied.is_empty().then_some(()).ok_or_else(|| format!("an old {news:?} is news"));
            self.ask(Law::Late, is_late);
            (snapshot, 0)
        };
        self.learnt.insert((snapshot, thing), learnt);
        learnt
    }

    /// The objects that are there, or known.
    pub fn model(&self, things: &Server) -> laws::Model {
        let mut model = laws::Model::new(self.layout, PRESENT);
        model.apply(&Change::put(world::schema()));
        for object in things.iter().filter_map(|thing| self.object(*thing)) {
            model.apply(&Change::put(object.clone()));
        }
        model
    }

    fn snapshot(&mut self, things: Server, snapshot: Snapshot, model: &laws::Model) -> Id {
        if let Some(id) = self.snapshot_of.get(&things).copied() {
            if self.snapshots[id as usize].snapshot != snapshot {
                self.ask(Law::Late, Err(format!("one knowledge, two snapshots: {snapshot:?}")));
            }
            return id;
        }
        self.ask(Law::Indexed, laws::indexed(&snapshot, model));
        for bird in self.birds.clone() {
            self.ask(Law::Settles, laws::settles(model, &snapshot, &bird, Reads::Expected));
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
                if let (Effect::PatchApiBindingStatus(_), Some(status)) = (&effect, after.status()) {
                    self.ask(Law::Exclusive, laws::newly_listed(&seen, after.key(), status));
                    self.ask(Law::Exclusive, laws::named_apart(&seen, after.key(), status));
                    let known = &seen.binding(after.key()).unwrap().status;
                    self.ask(Law::Monotone, laws::monotone(&seen, after.key(), known, status));
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
    pub fn serve(&mut self, pass: Id, server: &mut Server) -> Answer {
        let slot = match self.effect(pass) {
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
        let (answer, after) = match self.served.get(&(pass, before)) {
            Some(served) => *served,
            None => {
                let served = self.carry_out(pass, slot, before);
                self.served.insert((pass, before), served);
                served
            }
        };
        server[slot] = after;
        answer
    }

    fn carry_out(&mut self, pass: Id, slot: usize, before: Id) -> (Answer, Id) {
        let mut model = laws::Model::new(self.layout, PRESENT);
        if let Some(object) = self.object(before) {
            model.apply(&Change::put(object.clone()));
        }
        let mut server = laws::Server::new(&model, Reads::True);
        let outcome = server.execute(self.key(pass), self.effect(pass));
        let (kind, key) = world::name(slot);
        let after = self.write(before, server.get(kind, &key).cloned());
        let answer = match outcome {
            Outcome::Done(_) => Answer::Done(after),
            Outcome::Conflict { .. } => Answer::Conflict(after),
            no if no.has_reason("NotFound") => Answer::NotFound,
            no if no.has_reason("AlreadyExists") => Answer::AlreadyExists,
            other => panic!("{}: {other}", self.effect(pass)),
        };
        (answer, after)
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
