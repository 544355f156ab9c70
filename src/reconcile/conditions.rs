//! The status that a plan arrives at.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;

use crate::api::{
    ApiBindingStatus, BoundResource, ClusterName, Condition, GroupResource, List, PermissionClaim, Phase, Text,
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
            kind: Text::of_word(kind),
            status: Text::of_word("False"),
            severity: Text::of_word(self.severity.as_str()),
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
    phase: &'a Phase,
    export_cluster: &'a ClusterName,
    export_claims: &'a List<PermissionClaim>,
    bound: Cow<'a, [BoundResource]>,
    conditions: Cow<'a, [Condition]>,
    /// False if a condition was set: then all are sorted at the end.
    is_sorted: bool,
    index: Option<Index>,
    export_valid: Option<Result<(), Verdict>>,
    up_to_date: Option<Result<(), Verdict>>,
    initial: Option<Result<(), Verdict>>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(before: &'a ApiBindingStatus) -> Self {
        Self {
            before,
            phase: &before.phase,
            export_cluster: &before.api_export_cluster_name,
            export_claims: &before.export_permission_claims,
            bound: Cow::Borrowed(&before.bound_resources),
            conditions: Cow::Borrowed(&before.conditions),
            is_sorted: true,
            index: Index::of(&before.bound_resources),
            export_valid: None,
            up_to_date: None,
            initial: None,
        }
    }

    pub(crate) fn set_export_cluster(&mut self, cluster: &'a ClusterName) {
        self.export_cluster = cluster;
    }

    pub(crate) fn set_export_claims(&mut self, claims: &'a List<PermissionClaim>) {
        self.export_claims = claims;
    }

    /// Replaces the entry of that resource, or adds one at the end.
    pub(crate) fn set_bound(&mut self, bound: BoundResource) {
        let resource = bound.group_resource();
        let position = self.position(&resource);
        let found = position.and_then(|position| self.bound.get(position));
        if found == Some(&bound) {
            return;
        }
        if let Some(index) = &mut self.index {
            index.replace(found, &bound, position.unwrap_or(self.bound.len()));
        }
        let entries = self.bound.to_mut();
        match position.and_then(|position| entries.get_mut(position)) {
            Some(entry) => *entry = bound,
            None => entries.push(bound),
        }
        if self.index.is_none() {
            self.index = Index::of(&self.bound);
        }
    }

    /// The entry of a resource.
    pub(crate) fn bound(&self, resource: &GroupResource) -> Option<&BoundResource> {
        self.bound.get(self.position(resource)?)
    }

    /// True if a bound CRD is listed.
    pub(crate) fn lists(&self, uid: &str) -> bool {
        match &self.index {
            Some(index) => index.uids.contains_key(uid),
            None => self.bound.iter().any(|bound| bound.schema.uid == *uid),
        }
    }

    fn position(&self, resource: &GroupResource) -> Option<usize> {
        match &self.index {
            Some(index) => index.positions.get(resource).copied(),
            None => self.bound.iter().position(|entry| entry.is(resource)),
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
        self.phase = &Phase::Bound;
    }

    /// Binding has just begun.
    pub(crate) fn begin(&mut self, verdict: Verdict) {
        self.initial = Some(Err(verdict));
        self.phase = &Phase::Binding;
    }

    /// True if every verdict is good: of a binding with which all was well, no condition changes.
    pub(crate) fn is_well(&self) -> bool {
        [&self.export_valid, &self.up_to_date, &self.initial].into_iter().all(|verdict| matches!(verdict, Some(Ok(()))))
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
        let Some(initial) = self.condition(Condition::INITIAL_BINDING_COMPLETED) else { return };
        match initial.status.as_str() {
            "True" => self.set_true(Condition::READY, now),
            "False" | "Unknown" => {
                let severity = if initial.status == "False" { initial.severity.clone() } else { Text::default() };
                let ready = Condition {
                    kind: Text::of_word(Condition::READY),
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

    fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == *kind)
    }

    fn set_true(&mut self, kind: &str, now: Timestamp) {
        // The usual case, told without making a condition to compare with.
        if self.condition(kind).is_some_and(Condition::is_plainly_true) {
            self.is_sorted = false;
            return;
        }
        self.set(Condition { kind: Text::of_word(kind), status: Text::of_word("True"), ..Condition::default() }, now);
    }

    /// Sets a condition by type; one that says the same keeps its time (SPEC 4).
    fn set(&mut self, mut condition: Condition, now: Timestamp) {
        let position = self.conditions.iter().position(|found| found.kind == condition.kind);
        let found = position.and_then(|position| self.conditions.get(position));
        if !found.is_some_and(|found| found.says(&condition)) {
            condition.last_transition_time = whole_seconds(now).to_string().into();
            let conditions = self.conditions.to_mut();
            match position.and_then(|position| conditions.get_mut(position)) {
                Some(found) => *found = condition,
                None => conditions.push(condition),
            }
        }
        self.is_sorted = false;
    }

    fn sort(&mut self) {
        if !self.conditions.is_sorted_by(|left, right| left.rank() <= right.rank()) {
            self.conditions.to_mut().sort_by(|left, right| left.rank().cmp(&right.rank()));
        }
    }

    /// The status at the end; `None` if nothing changed.
    pub(crate) fn finish(mut self) -> Option<ApiBindingStatus> {
        fn changed<T: Clone + PartialEq>(draft: Cow<'_, [T]>, before: &List<T>) -> Option<List<T>> {
            match draft {
                Cow::Owned(items) if items[..] != before[..] => Some(items.into()),
                _ => None,
            }
        }
        if !self.is_sorted {
            self.sort();
        }
        let before = self.before;
        let bound_resources = changed(self.bound, &before.bound_resources);
        let conditions = changed(self.conditions, &before.conditions);
        let is_same = bound_resources.is_none()
            && conditions.is_none()
            && self.phase == &before.phase
            && self.export_cluster == &before.api_export_cluster_name
            && self.export_claims == &before.export_permission_claims;
        if is_same {
            return None;
        }
        Some(ApiBindingStatus {
            api_export_cluster_name: self.export_cluster.clone(),
            bound_resources: bound_resources.unwrap_or_else(|| before.bound_resources.clone()),
            phase: self.phase.clone(),
            conditions: conditions.unwrap_or_else(|| before.conditions.clone()),
            applied_permission_claims: before.applied_permission_claims.clone(),
            export_permission_claims: self.export_claims.clone(),
            extra: before.extra.clone(),
        })
    }
}

#[cfg(test)]
mod tests;
