//! The status that a plan arrives at.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;

use crate::api::{
    ApiBindingStatus, BoundResource, ClusterName, Condition, GroupResource, PermissionClaim, Phase, Text,
};
use crate::snapshot::whole_seconds;

/// How bad it is that a condition is False.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    Error,
    Warning,
    Info,
}

impl Severity {
    fn as_str(self) -> &'static str {
        match self {
            Self::Error => "Error",
            Self::Warning => "Warning",
            Self::Info => "Info",
        }
    }
}

/// Why something is not so.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) reason: &'static str,
    pub(crate) severity: Severity,
    pub(crate) message: String,
}

impl Verdict {
    pub(crate) fn error(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, severity: Severity::Error, message: message.into() }
    }

    fn condition(&self, kind: &str) -> Condition {
        Condition {
            kind: kind.into(),
            status: "False".into(),
            severity: self.severity.as_str().into(),
            reason: self.reason.into(),
            message: (&self.message).into(),
            ..Condition::default()
        }
    }
}

/// Where the entries of a long list are: with a list gone through for each of its entries, a binding
/// of a thousand resources would cost a million looks.
struct Index {
    positions: BTreeMap<GroupResource, usize>,
    /// How many entries list a bound CRD.
    uids: BTreeMap<Text, usize>,
}

impl Index {
    /// Shorter lists are faster gone through.
    const WORTH: usize = 16;

    fn of(entries: &[BoundResource]) -> Option<Self> {
        if entries.len() < Self::WORTH {
            return None;
        }
        let mut index = Self { positions: BTreeMap::new(), uids: BTreeMap::new() };
        for (position, entry) in entries.iter().enumerate() {
            // Of several entries of one resource the first counts, as in a list gone through.
            index.positions.entry(entry.group_resource()).or_insert(position);
            *index.uids.entry(entry.schema.uid.clone()).or_default() += 1;
        }
        Some(index)
    }

    fn replace(&mut self, old: Option<&BoundResource>, new: &BoundResource, position: usize) {
        if let Some(count) = old.and_then(|old| self.uids.get_mut(&old.schema.uid)) {
            *count -= 1;
            if *count == 0
                && let Some(old) = old
            {
                self.uids.remove(&old.schema.uid);
            }
        }
        self.positions.insert(new.group_resource(), position);
        *self.uids.entry(new.schema.uid.clone()).or_default() += 1;
    }
}

/// The status of a binding while it is planned. What stays as it is, is not copied.
///
/// Verdicts are gathered and set once, at the end (D11).
pub(crate) struct Draft<'a> {
    before: &'a ApiBindingStatus,
    status: Cow<'a, ApiBindingStatus>,
    index: Option<Index>,
    export_valid: Option<Result<(), Verdict>>,
    up_to_date: Option<Result<(), Verdict>>,
    initial: Option<Result<(), Verdict>>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(before: &'a ApiBindingStatus) -> Self {
        Self {
            before,
            status: Cow::Borrowed(before),
            index: Index::of(&before.bound_resources),
            export_valid: None,
            up_to_date: None,
            initial: None,
        }
    }

    pub(crate) fn set_phase(&mut self, phase: Phase) {
        if self.status.phase != phase {
            self.status.to_mut().phase = phase;
        }
    }

    pub(crate) fn set_export_cluster(&mut self, cluster: &ClusterName) {
        if self.status.api_export_cluster_name != *cluster {
            self.status.to_mut().api_export_cluster_name = cluster.clone();
        }
    }

    pub(crate) fn set_export_claims(&mut self, claims: &[PermissionClaim]) {
        if self.status.export_permission_claims != claims {
            self.status.to_mut().export_permission_claims = claims.to_vec();
        }
    }

    /// Replaces the entry of that resource, or adds one at the end.
    pub(crate) fn set_bound(&mut self, bound: BoundResource) {
        let resource = bound.group_resource();
        let position = self.position(&resource);
        let found = position.and_then(|position| self.status.bound_resources.get(position));
        if found == Some(&bound) {
            return;
        }
        if let Some(index) = &mut self.index {
            index.replace(found, &bound, position.unwrap_or(self.status.bound_resources.len()));
        }
        let entries = &mut self.status.to_mut().bound_resources;
        match position.and_then(|position| entries.get_mut(position)) {
            Some(entry) => *entry = bound,
            None => entries.push(bound),
        }
        if self.index.is_none() {
            self.index = Index::of(&self.status.bound_resources);
        }
    }

    /// The entry of a resource.
    pub(crate) fn bound(&self, resource: &GroupResource) -> Option<&BoundResource> {
        self.status.bound_resources.get(self.position(resource)?)
    }

    /// True if a bound CRD is listed.
    pub(crate) fn lists(&self, uid: &str) -> bool {
        match &self.index {
            Some(index) => index.uids.contains_key(uid),
            None => self.status.bound_resources.iter().any(|bound| bound.schema.uid == *uid),
        }
    }

    fn position(&self, resource: &GroupResource) -> Option<usize> {
        match &self.index {
            Some(index) => index.positions.get(resource).copied(),
            None => self.status.bound_resources.iter().position(|entry| entry.is(resource)),
        }
    }

    /// The export can be bound, as far as is known.
    pub(crate) fn export_is_valid(&mut self) {
        self.export_valid = Some(Ok(()));
    }

    /// The export cannot be bound.
    pub(crate) fn export_is_invalid(&mut self, verdict: Verdict) {
        self.export_valid = Some(Err(verdict));
    }

    /// "Fail both" of SPEC 4: once True, `InitialBindingCompleted` never goes back (D16).
    pub(crate) fn fail_both(&mut self, verdict: Verdict) {
        if !self.before.condition(Condition::INITIAL_BINDING_COMPLETED).is_some_and(Condition::is_true) {
            self.initial = Some(Err(verdict.clone()));
        }
        self.up_to_date = Some(Err(verdict));
    }

    /// All that the export offers is bound.
    pub(crate) fn complete(&mut self) {
        self.initial = Some(Ok(()));
        self.up_to_date = Some(Ok(()));
        self.set_phase(Phase::Bound);
    }

    /// Binding has just begun.
    pub(crate) fn begin(&mut self, verdict: Verdict) {
        self.initial = Some(Err(verdict));
        self.set_phase(Phase::Binding);
    }

    /// Sets the conditions that the verdicts make.
    pub(crate) fn set_verdicts(&mut self, now: Timestamp) {
        let verdicts = [
            (Condition::API_EXPORT_VALID, self.export_valid.take()),
            (Condition::BINDING_UP_TO_DATE, self.up_to_date.take()),
            (Condition::INITIAL_BINDING_COMPLETED, self.initial.take()),
        ];
        for (kind, verdict) in verdicts {
            match verdict {
                Some(Ok(())) => self.set_true(kind, now),
                Some(Err(verdict)) => self.set(verdict.condition(kind), now),
                None => {}
            }
        }
    }

    /// `Ready` as the summary of the others (SPEC 3).
    pub(crate) fn summarise(&mut self, now: Timestamp) {
        let Some(initial) = self.status.condition(Condition::INITIAL_BINDING_COMPLETED) else { return };
        match initial.status.as_str() {
            "True" => self.set_true(Condition::READY, now),
            "False" | "Unknown" => {
                let severity = if initial.status == "False" { initial.severity.clone() } else { Text::default() };
                let ready = Condition {
                    kind: Condition::READY.into(),
                    status: initial.status.clone(),
                    severity,
                    reason: initial.reason.clone(),
                    message: initial.message.clone(),
                    ..Condition::default()
                };
                self.set(ready, now);
            }
            _ => {}
        }
    }

    fn set_true(&mut self, kind: &str, now: Timestamp) {
        // The usual case, told without making a condition to compare with.
        let is_so = |found: &Condition| {
            found.is_true() && found.severity.is_empty() && found.reason.is_empty() && found.message.is_empty()
        };
        if self.status.condition(kind).is_some_and(is_so) {
            return self.sort();
        }
        self.set(Condition { kind: kind.into(), status: "True".into(), ..Condition::default() }, now);
    }

    /// Sets a condition by type; one that says the same keeps its time (SPEC 4).
    fn set(&mut self, mut condition: Condition, now: Timestamp) {
        let position = self.status.conditions.iter().position(|found| found.kind == condition.kind);
        let found = position.and_then(|position| self.status.conditions.get(position));
        if !found.is_some_and(|found| found.says(&condition)) {
            condition.last_transition_time = whole_seconds(now).to_string().into();
            let conditions = &mut self.status.to_mut().conditions;
            match position.and_then(|position| conditions.get_mut(position)) {
                Some(found) => *found = condition,
                None => conditions.push(condition),
            }
        }
        self.sort();
    }

    fn sort(&mut self) {
        fn rank(condition: &Condition) -> (bool, &Text) {
            (condition.kind != Condition::READY, &condition.kind)
        }
        if !self.status.conditions.is_sorted_by(|left, right| rank(left) <= rank(right)) {
            self.status.to_mut().conditions.sort_by(|left, right| rank(left).cmp(&rank(right)));
        }
    }

    /// The status at the end; `None` if nothing changed.
    pub(crate) fn finish(self) -> Option<ApiBindingStatus> {
        match self.status {
            Cow::Owned(status) if status != *self.before => Some(status),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
