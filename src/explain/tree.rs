//! An explanation as a person reads it.

use std::fmt;

use super::{ClaimFound, CrdFound, Explanation, ExportFound, HomeFound, LockFound, ResourceExplanation, State};
use crate::api::{ClusterName, Phase, Text};
use crate::snapshot::Origin;

/// A line and what hangs below it.
struct Node {
    text: String,
    below: Vec<Node>,
}

impl Node {
    fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), below: Vec::new() }
    }

    fn with(mut self, below: impl IntoIterator<Item = Node>) -> Self {
        self.below.extend(below);
        self
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, indent: &str) -> fmt::Result {
        let last = self.below.len().saturating_sub(1);
        for (at, node) in self.below.iter().enumerate() {
            let (branch, trunk) = if at == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            writeln!(f, "{indent}{branch}{}", node.text)?;
            node.write(f, &format!("{indent}{trunk}"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { String::new() } else { format!(" ({})", self.path) };
        let phase = match &self.phase {
            None => "which does not exist".into(),
            Some(Phase::New) => "without a phase".into(),
            Some(phase) => format!("in phase {phase}"),
        };
        writeln!(f, "APIBinding {}{path}, {phase}", self.binding)?;
        let root = Node::new("")
            .with(self.export.iter().flat_map(export))
            .with(self.locks.as_ref().and_then(locks))
            .with(self.resources.iter().map(resource))
            .with(
                self.claims
                    .iter()
                    .map(|claim| Node::new(format!("accepted claim on {}: {}", claim.resource, claimed(&claim.found)))),
            )
            .with([verdict(self)]);
        root.write(f, "")
    }
}

fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Local => "on this shard",
        Origin::Global => "in the cache server",
    }
}

fn export(export: &super::ExportExplanation) -> Vec<Node> {
    let asked = format!("export `{}` at {}", export.name, export.path);
    match &export.found {
        ExportFound::None => {
            vec![Node::new(format!("✗ {asked}: not found, neither on this shard nor in the cache server"))]
        }
        ExportFound::Several { origin: set, exports } => {
            let each = exports.iter().map(|key| Node::new(format!("{}|{}", key.cluster, key.name)));
            vec![Node::new(format!("✗ {asked}: several, {}", origin(*set))).with(each)]
        }
        ExportFound::One { origin: set, export: key } => {
            let identity = match &export.identity {
                Some(identity) => format!("✓ identity {identity}"),
                None => "✗ it has no identity yet".into(),
            };
            let found = format!("✓ {asked}: {}|{}, {}", key.cluster, key.name, origin(*set));
            vec![Node::new(found), Node::new(identity)]
        }
    }
}

fn locks(found: &HomeFound) -> Option<Node> {
    match found {
        HomeFound::Readable => None,
        HomeFound::WrittenAnew { annotation, message } => {
            let rest = Node::new(format!("it cannot be read: {message}"));
            Some(Node::new(format!("… locks: {annotation} is written anew, from what is bound")).with([rest]))
        }
        HomeFound::Missing => Some(Node::new("✗ locks: there is no LogicalCluster")),
        HomeFound::Unreadable { annotation, message } => {
            Some(Node::new(format!("✗ locks: {annotation}")).with([Node::new(message)]))
        }
    }
}

fn resource(found: &ResourceExplanation) -> Node {
    let schema = format!("schema {}|{}", found.schema_cluster, found.schema);
    let Some(resource) = &found.resource else { return Node::new(format!("✗ {schema}: not found")) };
    let asked = found.lock.is_some() || found.conflict.is_some() || found.crd.is_some();
    let rest = (!asked).then(|| Node::new("· not looked at: what is wrong above comes first"));
    let names = match (&found.conflict, &found.crd) {
        (Some(conflict), _) => Some(Node::new(format!("✗ names: {}", conflict.message))),
        (None, Some(_)) => Some(Node::new("✓ names: no conflict")),
        (None, None) => None,
    };
    let uid = found.uid.as_ref().map(Text::as_str).unwrap_or_default();
    let crd = found
        .crd
        .as_ref()
        .map(|crd| Node::new(format!("{} bound CRD {}|{uid}: {}", mark(crd), ClusterName::BOUND_CRDS, crd_text(crd))));
    let is_held = matches!(found.lock, Some(LockFound::Held { .. }));
    let skipped = is_held.then(|| Node::new("· names and CRD are not looked at while it is held"));
    let stopped = (asked && !is_held && found.conflict.is_none() && found.crd.is_none())
        .then(|| Node::new("· names and CRD not looked at: a resource above stops it"));
    let bound = found.bound.then(|| Node::new("✓ bound"));
    Node::new(format!("{resource}, {schema}"))
        .with(found.lock.iter().map(lock))
        .with(names)
        .with(crd)
        .with(skipped)
        .with(stopped)
        .with(rest)
        .with(bound)
}

fn lock(found: &LockFound) -> Node {
    Node::new(match found {
        LockFound::Own => "✓ lock: held by this binding".into(),
        LockFound::Free => "✓ lock: free, to be taken".into(),
        LockFound::Abandoned { binding } => {
            format!("… lock: held by APIBinding `{binding}`, which seems not to exist: taken if the server knows none")
        }
        LockFound::TakenOver { ended } => {
            format!("✓ lock: of a CRD that did not come, over since {ended}, to be taken over")
        }
        LockFound::Held { binding, crd, layer, over, crd_exists } => {
            let holder = match (crd, crd_exists) {
                (false, _) => format!("APIBinding `{binding}`"),
                (true, true) => "a CustomResourceDefinition of the workspace".into(),
                (true, false) => "a CustomResourceDefinition that is not there".into(),
            };
            let by = layer.map_or("its status".into(), |layer| format!("annotation {}", layer.annotation()));
            let until = match (crd, over) {
                (true, Some(time)) => format!(", until {time}"),
                (true, None) if !crd_exists => ", without an end".into(),
                _ => String::new(),
            };
            format!("✗ lock: held by {holder}{until} ({by})")
        }
    })
}

fn mark(crd: &CrdFound) -> &'static str {
    match crd {
        CrdFound::Serving => "✓",
        CrdFound::NotEstablished | CrdFound::Absent => "…",
        CrdFound::CannotBeMade(_) | CrdFound::Invalid(_) | CrdFound::Failed => "✗",
    }
}

fn crd_text(crd: &CrdFound) -> String {
    match crd {
        CrdFound::Serving => "established".into(),
        CrdFound::NotEstablished => "not established yet".into(),
        CrdFound::Absent => "not there, to be created".into(),
        CrdFound::CannotBeMade(why) => format!("cannot be made: {why}"),
        CrdFound::Invalid(why) => format!("refused as invalid: {why}"),
        CrdFound::Failed => "could not be created".into(),
    }
}

fn claimed(found: &ClaimFound) -> String {
    match found {
        ClaimFound::NoSchema => "no export of that identity has it".into(),
        ClaimFound::Schema { cluster, name, crd } => format!("schema {cluster}|{name}, bound CRD {}", crd_text(crd)),
    }
}

fn verdict(explanation: &Explanation) -> Node {
    let verdict = &explanation.verdict;
    let state = match verdict.state {
        State::Bound => "✓ bound",
        State::Outdated => "✗ bound, but out of date with the export",
        State::Progressing => "… not bound yet",
        State::Stuck => "✗ not bound",
        State::Absent => "✗ not bound",
        State::Unknown => "✗ left alone",
    };
    let reason = if verdict.reason.is_empty() { String::new() } else { format!(" ({})", verdict.reason) };
    let message = if verdict.message.is_empty() { String::new() } else { format!(": {}", verdict.message) };
    let next = explanation.next.iter().map(|effect| Node::new(format!("next: {effect}")));
    let waits = explanation.waits_for.iter().map(|event| Node::new(format!("waits for {event}")));
    let cures = explanation.cures.iter().map(|cure| Node::new(format!("cure: {cure}")));
    Node::new(format!("{state}{reason}{message}")).with(next).with(waits).with(cures)
}
