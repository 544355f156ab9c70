//! The edits.

/// What shows that an edit is seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Proof {
    /// The law's test in `tests/laws.rs` fails.
    Laws,
    /// `tests/simulation.rs` tells of the law.
    Simulation,
    /// `tests/explore.rs` tells of the law.
    Explore,
}

use Proof::{Explore, Laws, Simulation};

/// One edit.
#[derive(Debug)]
pub struct Edit {
    pub name: &'static str,
    /// The law that has to see it.
    pub law: &'static str,
    pub proof: Proof,
    /// Below `src`.
    pub file: &'static str,
    /// What stands there, once.
    pub find: &'static str,
    pub replace: &'static str,
}

pub const ALL: &[Edit] = &[
    Edit {
        name: "neighbour-without-reference",
        law: "total",
        proof: Laws,
        file: "reconcile/names.rs",
        find: "match workspace.binding(name).and_then(|binding| binding.reference.as_ref()) {",
        replace: "match Some(workspace.binding(name).and_then(|binding| binding.reference.as_ref()).unwrap()) {",
    },
    Edit {
        name: "index-past-the-end",
        law: "total",
        proof: Laws,
        file: "reconcile/mod.rs",
        find: "let last = creations.get(stops.saturating_sub(1)).map(|create| &create.name);",
        replace: "let last = Some(&creations[stops].name);",
    },
    Edit {
        name: "hidden-counter",
        law: "deterministic",
        proof: Laws,
        file: "reconcile/commit.rs",
        find: "field_manager: FIELD_MANAGER.into(),",
        replace: "field_manager: {
            static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
            format!(\"{FIELD_MANAGER}-{}\", COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)).into()
        },",
    },
    Edit {
        name: "doubt-by-order-of-arrival",
        law: "deterministic",
        proof: Laws,
        file: "snapshot/world.rs",
        find: "doubt = change.uid && cluster.doubt(object);",
        replace: "doubt = false;",
    },
    Edit {
        name: "no-plan-beyond-creations",
        law: "predicts",
        proof: Laws,
        file: "reconcile/mod.rs",
        find: "if creates_for_neighbours(snapshot, key, &plan) {",
        replace: "if false && creates_for_neighbours(snapshot, key, &plan) {",
    },
    Edit {
        name: "created-is-served",
        law: "predicts",
        proof: Laws,
        file: "reconcile/binding.rs",
        find: "CrdFound::NotEstablished | CrdFound::Absent => waiting.push(exported.schema.clone()),",
        replace: "CrdFound::Absent => {}
            CrdFound::NotEstablished => waiting.push(exported.schema.clone()),",
    },
    Edit {
        name: "storage-versions-pile-up",
        law: "settles",
        proof: Laws,
        file: "reconcile/binding.rs",
        find: "        storage_versions.dedup();\n",
        replace: "",
    },
    Edit {
        name: "lock-written-again",
        law: "settles",
        proof: Laws,
        file: "reconcile/locks.rs",
        find: "let rewrites = is_any_free && (!canonical || !rewritten.is_empty());",
        replace: "let rewrites = is_any_free || canonical;",
    },
    Edit {
        name: "failed-creation-forgotten",
        law: "bounded",
        proof: Laws,
        file: "pass.rs",
        find: "self.notes.creations.insert(create.name.clone(), creation);",
        replace: "drop((create, creation));",
    },
    Edit {
        name: "six-attempts",
        law: "bounded",
        proof: Laws,
        file: "pass.rs",
        find: "const ATTEMPTS: u32 = 5;",
        replace: "const ATTEMPTS: u32 = 6;",
    },
    Edit {
        name: "names-not-judged-are-free",
        law: "exclusive",
        proof: Laws,
        file: "snapshot/facts.rs",
        find: "if self.names_judged || schema_is_bound {",
        replace: "if self.names_judged || schema_is_bound || true {",
    },
    Edit {
        name: "own-lock-released-when-not-wanted",
        law: "exclusive",
        proof: Explore,
        file: "reconcile/locks.rs",
        find: "        let mut skipped = Skipped::new();\n        let mut is_any_free",
        replace: "        let mut dead = dead;
        let own = self.home.bindings.locks().into_iter().flat_map(|locks| locks.iter());
        let own = own.filter(|(resource, lock)| lock.name == *self.name() && !wanted.contains(&resource));
        dead.extend(own.map(|(resource, _)| resource.clone()));
        let mut skipped = Skipped::new();
        let mut is_any_free",
    },
    Edit {
        name: "entry-of-the-predecessor-left",
        law: "exclusive",
        proof: Explore,
        file: "reconcile/locks.rs",
        find: "lock == desired || self.is_left_alone(lock, resource)",
        replace: "lock == desired || self.is_left_alone(lock, resource) || true",
    },
    Edit {
        name: "crd-lock-taken-without-asking",
        law: "confined",
        proof: Laws,
        file: "reconcile/locks.rs",
        find: "if self.crd_read(resource) != CrdRead::Absent {",
        replace: "if false && self.crd_read(resource) != CrdRead::Absent {",
    },
    Edit {
        name: "lock-released-because-no-such-name-is-known",
        law: "confined",
        proof: Laws,
        file: "reconcile/locks.rs",
        find: "        match self.read(&lock.name) {
            BindingRead::Absent => true,",
        replace: "        if self.workspace.binding(&lock.name).is_none() {
            return true;
        }
        match self.read(&lock.name) {
            BindingRead::Absent => true,",
    },
    Edit {
        name: "commit-without-resource-version",
        law: "confined",
        proof: Laws,
        file: "reconcile/commit.rs",
        find: "let resource_version = &binding.meta.resource_version;",
        replace: "let resource_version = &Text::default();
        let _ = binding;",
    },
    Edit {
        name: "lock-without-resource-version",
        law: "confined",
        proof: Simulation,
        file: "reconcile/locks.rs",
        find: "let resource_version = &self.home.meta.resource_version;",
        replace: "let resource_version = &Text::default();",
    },
    Edit {
        name: "lock-without-resource-version-in-two-processes",
        law: "exclusive",
        proof: Explore,
        file: "reconcile/locks.rs",
        find: "let resource_version = &self.home.meta.resource_version;",
        replace: "let resource_version = &Text::default();",
    },
    Edit {
        name: "completed-goes-back",
        law: "monotone",
        proof: Laws,
        file: "reconcile/conditions.rs",
        find: "if !self.before.condition(Condition::INITIAL_BINDING_COMPLETED).is_some_and(Condition::is_true) {",
        replace: "if true {",
    },
    Edit {
        name: "storage-versions-lost",
        law: "monotone",
        proof: Laws,
        file: "reconcile/binding.rs",
        find: "storage_versions.extend(self.stored.iter().chain(before).cloned());",
        replace: "storage_versions.extend(self.stored.iter().cloned());
            drop(before);",
    },
    Edit {
        name: "claimants-sleep",
        law: "woken",
        proof: Laws,
        file: "wakeup.rs",
        find: "        self.claimants(&export.identity);\n",
        replace: "",
    },
    Edit {
        name: "listed-crds-stay-in-the-index",
        law: "indexed",
        proof: Laws,
        file: "snapshot/cluster.rs",
        find: "reindex(&mut self.listed, &keys(old, Binding::bound_uids),",
        replace: "reindex(&mut self.listed, &[],",
    },
    Edit {
        name: "names-of-crds-stay-in-the-index",
        law: "indexed",
        proof: Simulation,
        file: "snapshot/cluster.rs",
        find: "reindex(&mut self.names, &before,",
        replace: "reindex(&mut self.names, &[],",
    },
    Edit {
        name: "deletions-forgotten",
        law: "late",
        proof: Laws,
        file: "snapshot/change.rs",
        find: "if deleted.is_some_and(|deleted| !older(deleted, version) && older(\"0\", version)) {",
        replace: "if false && deleted.is_some() {",
    },
    Edit {
        name: "older-replaces-newer",
        law: "late",
        proof: Laws,
        file: "snapshot/change.rs",
        find: "if self.known(origin, kind, &key).is_some_and(|known| older(version, &known.resource_version)) {",
        replace: "if false {",
    },
    Edit {
        name: "start-passes-over-what-is-bound",
        law: "recovers",
        proof: Simulation,
        file: "wakeup.rs",
        find: "pub fn all(snapshot: &Snapshot) -> Vec<BindingKey> {",
        replace: "pub fn all(snapshot: &Snapshot) -> Vec<BindingKey> {
    let mut keys = everything(snapshot);
    keys.retain(|key| snapshot.binding(key).is_none_or(|binding| binding.status.phase.as_str() != \"Bound\"));
    keys
}

fn everything(snapshot: &Snapshot) -> Vec<BindingKey> {",
    },
    Edit {
        name: "start-passes-over-what-waits",
        law: "recovers",
        proof: Simulation,
        file: "wakeup.rs",
        find: "pub fn all(snapshot: &Snapshot) -> Vec<BindingKey> {",
        replace: "pub fn all(snapshot: &Snapshot) -> Vec<BindingKey> {
    let mut keys = everything(snapshot);
    keys.retain(|key| snapshot.binding(key).is_none_or(|binding| binding.status.phase.as_str() != \"Binding\"));
    keys
}

fn everything(snapshot: &Snapshot) -> Vec<BindingKey> {",
    },
    Edit {
        name: "established-wakes-nobody",
        law: "woken",
        proof: Simulation,
        file: "wakeup.rs",
        find: "            self.schema_that_exists(cluster, schema);\n        }\n        for schema in world.schemas_with_uid(name) {",
        replace: "            let _ = (cluster, schema);\n        }\n        for schema in world.schemas_with_uid(name).take(0) {",
    },
    Edit {
        name: "failed-is-not-tried-again",
        law: "stable",
        proof: Simulation,
        file: "pass.rs",
        find: "        if self.failure.happened || early.is_some() || self.notes.lacks_answers() || self.notes.ask_no_more {",
        replace: "        if early.is_some() || self.notes.lacks_answers() || self.notes.ask_no_more {",
    },
    Edit {
        name: "no-look-when-a-lock-is-over",
        law: "stable",
        proof: Simulation,
        file: "reconcile/mod.rs",
        find: "Some(time) => Retry::After(time),",
        replace: "Some(_) => Retry::Forget,",
    },
    Edit {
        name: "a-crd-that-is-gone-frees-nobody",
        law: "woken",
        proof: Laws,
        file: "wakeup.rs",
        find: "let takes_other_names = taken(before) != taken(after);",
        replace: "let takes_other_names = taken(before) != taken(after) && after.is_some();",
    },
    Edit {
        name: "who-lists-a-crd-sleeps",
        law: "woken",
        proof: Laws,
        file: "wakeup.rs",
        find: "            known.listing(name).for_each(|name| self.add(cluster, name));\n",
        replace: "",
    },
    Edit {
        name: "successor-is-no-doubt",
        law: "woken",
        proof: Laws,
        file: "snapshot/facts.rs",
        find: "binding.is_none_or(|binding| !self.uid.is_empty() && self.uid != binding.meta.uid)",
        replace: "binding.is_none()",
    },
    Edit {
        name: "rival-of-itself",
        law: "exclusive",
        proof: Laws,
        file: "reconcile/names.rs",
        find: "let bound = bound.filter(|rival| !draft.lists(rival.name) && rival",
        replace: "let bound = bound.filter(|rival| rival",
    },
    Edit {
        name: "company-unseen",
        law: "exclusive",
        proof: Laws,
        file: "snapshot/cluster.rs",
        find: "self.crowded.get(crd).is_some()",
        replace: "self.crowded.get(crd).is_some_and(|()| false)",
    },
    Edit {
        name: "company-stays",
        law: "indexed",
        proof: Laws,
        file: "snapshot/cluster.rs",
        find: "judged.iter().for_each(|name| self.judge_company(name));",
        replace: "self.judge_company(name);",
    },
    Edit {
        name: "list-kinds-are-free",
        law: "exclusive",
        proof: Laws,
        file: "reconcile/names.rs",
        find: "if is_taken(&names.list_kind, &kinds) {",
        replace: "if false && is_taken(&names.list_kind, &kinds) {",
    },
    Edit {
        name: "crd-lock-without-grace",
        law: "confined",
        proof: Laws,
        file: "snapshot/locks.rs",
        find: "?.saturating_add(Self::GRACE);",
        replace: "?;",
    },
    Edit {
        name: "locks-of-former-days-unread",
        law: "confined",
        proof: Laws,
        file: "reconcile/locks.rs",
        find: "if self.is_split() { &Layer::ALL }",
        replace: "if self.is_split() { &[Layer::Crds, Layer::Bindings, Layer::Pending] }",
    },
    Edit {
        name: "answers-count-on-any-version",
        law: "confined",
        proof: Laws,
        file: "pass.rs",
        find: "if self.notes.has_answers() && self.home_version(snapshot) != self.asked_on {",
        replace: "if false && self.home_version(snapshot) != self.asked_on {",
    },
    Edit {
        name: "entry-of-the-successor-taken",
        law: "confined",
        proof: Laws,
        file: "reconcile/locks.rs",
        find: "        self.read(name) == BindingRead::Present(uid)\n",
        replace: "        self.read(name) == BindingRead::Present(uid) || true\n",
    },
    Edit {
        name: "claims-of-the-export-kept",
        law: "settles",
        proof: Laws,
        file: "reconcile/conditions.rs",
        find: "        self.export_claims = claims;\n",
        replace: "        if !claims.is_empty() {\n            self.export_claims = claims;\n        }\n",
    },
    Edit {
        name: "deletion-told-as-it-was-is-undone",
        law: "late",
        proof: Laws,
        file: "snapshot/change.rs",
        find: "!older(deleted, version) && older(\"0\", version)",
        replace: "older(version, deleted) && older(\"0\", version)",
    },
];
