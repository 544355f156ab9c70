//! What a binding waits for, and what only a person can do about it.

use super::{CrdFound, Explanation, ExportExplanation, ExportFound, HomeFound, LockFound, ResourceExplanation, State};
use crate::api::{BindingKey, ClusterName, GroupResource, Text};
use crate::snapshot::{Annotation, Layer, Layout, Snapshot};

/// Events and cures, by what was found.
struct Advice<'a> {
    explanation: &'a Explanation,
    snapshot: &'a Snapshot,
    waits_for: Vec<String>,
    cures: Vec<String>,
}

/// What the binding waits for, and the cures.
pub(super) fn advice(explanation: &Explanation, snapshot: &Snapshot) -> (Vec<String>, Vec<String>) {
    let mut advice = Advice { explanation, snapshot, waits_for: Vec::new(), cures: Vec::new() };
    if explanation.verdict.state != State::Unknown {
        match &explanation.export {
            None => advice.cure("name an APIExport in spec.reference.export of the APIBinding"),
            Some(export) => advice.export(export),
        }
        advice.locks();
        for resource in &explanation.resources {
            advice.resource(resource);
        }
        advice.last_try();
    }
    (advice.waits_for, advice.cures)
}

impl Advice<'_> {
    fn wait(&mut self, event: impl Into<String>) {
        self.waits_for.push(event.into());
    }

    fn cure(&mut self, cure: impl Into<String>) {
        self.cures.push(cure.into());
    }

    fn export(&mut self, export: &ExportExplanation) {
        let (path, name) = (&export.path, &export.name);
        match &export.found {
            ExportFound::None => {
                self.wait(format!("an APIExport `{name}` in the logical cluster {path}"));
                self.cure(match export.path == self.explanation.binding.cluster.path() {
                    true => format!(
                        "create the APIExport, or correct spec.reference.export: it has no path (or names its own \
                         cluster), so the binding's own logical cluster was searched for `{name}`"
                    ),
                    false => format!(
                        "create the APIExport, or correct spec.reference.export: is `{path}` the path (or the id) of \
                         its logical cluster, and `{name}` its name?"
                    ),
                });
            }
            ExportFound::Several { exports, .. } => {
                let all: Vec<String> = exports.iter().map(|key| format!("{}|{}", key.cluster, key.name)).collect();
                self.wait(format!("all but one of these APIExports to go: {}", all.join(", ")));
                self.cure(format!("refer to one of them by the id of its logical cluster instead of {path}"));
            }
            ExportFound::One { export: key, .. } if export.identity.is_none() => {
                self.wait(format!("status.identityHash of APIExport {}|{}", key.cluster, key.name));
            }
            ExportFound::One { .. } => {}
        }
    }

    fn locks(&mut self) {
        let cluster = &self.explanation.binding.cluster;
        match &self.explanation.locks {
            Some(HomeFound::Missing) => {
                self.wait(format!("the LogicalCluster {cluster}|cluster, with a resourceVersion"));
            }
            Some(HomeFound::Unreadable { annotation, .. }) if self.is_annotation_missing() => {
                self.wait(format!("annotation {annotation} of LogicalCluster {cluster}|cluster to be there"));
                self.cure(format!(
                    "none is needed if this kcp keeps its locks in {annotation}: its LogicalCluster clean-up makes it; \
                     if it keeps them split, ask with the split layout"
                ));
            }
            Some(HomeFound::Unreadable { annotation, .. }) => {
                self.wait(format!("annotation {annotation} of LogicalCluster {cluster}|cluster to be readable"));
                self.cure(match self.snapshot.layout() {
                    Layout::Single => format!(
                        "remove the annotation {annotation}: the LogicalCluster clean-up makes it anew, from what \
                         is bound"
                    ),
                    Layout::Split => format!(
                        "correct the annotation {annotation}: a JSON map from resource to {{\"n\": binding, \"c\": \
                         true for a CRD, \"e\": expiry}}"
                    ),
                });
            }
            Some(HomeFound::Readable | HomeFound::WrittenAnew { .. }) | None => {}
        }
    }

    fn is_annotation_missing(&self) -> bool {
        let home = self.snapshot.logical_cluster(&self.explanation.binding.cluster);
        self.snapshot.layout() == Layout::Single && home.is_some_and(|home| home.legacy == Annotation::Missing)
    }

    fn resource(&mut self, found: &ResourceExplanation) {
        let (cluster, schema) = (&found.schema_cluster, &found.schema);
        let Some(resource) = &found.resource else {
            self.wait(format!("APIResourceSchema {cluster}|{schema}, or the APIExport no longer to name it"));
            self.cure("the owner of the APIExport creates the schema, or takes it out of spec.resources");
            return;
        };
        if let Some(LockFound::Held { .. }) = &found.lock {
            self.held(resource, found.lock.as_ref());
        }
        if let Some(conflict) = &found.conflict {
            let holder = match &conflict.binding {
                Some(binding) => format!("APIBinding `{binding}`"),
                None => format!("CustomResourceDefinition `{}`", conflict.crd),
            };
            self.wait(format!("{holder} of the same logical cluster to give up the name that {resource} needs"));
            self.cure(format!("delete {holder}, or do without this APIBinding: both want the same name"));
        }
        match &found.crd {
            Some(CrdFound::NotEstablished) => self.wait(format!(
                "CustomResourceDefinition {}|{} ({resource}) to be Established",
                ClusterName::BOUND_CRDS,
                found.uid.as_ref().map(Text::as_str).unwrap_or_default()
            )),
            Some(CrdFound::CannotBeMade(why)) => {
                self.wait(format!("another schema than {cluster}|{schema} in the APIExport"));
                self.cure(format!("the owner of the APIExport publishes a schema from which a CRD can be made: {why}"));
            }
            _ => {}
        }
    }

    fn held(&mut self, resource: &GroupResource, lock: Option<&LockFound>) {
        let Some(LockFound::Held { binding, crd, layer, over, crd_exists }) = lock else { return };
        let home = format!("LogicalCluster {}|cluster", self.explanation.binding.cluster);
        let holder = BindingKey::new(self.explanation.binding.cluster.clone(), binding.clone());
        if !crd && self.snapshot.binding(&holder).is_none() {
            let annotation = layer.unwrap_or(Layer::Legacy).annotation();
            self.wait(format!("the entry `{resource}` in annotation {annotation} of {home} to go"));
            self.cure(format!(
                "none should be needed: there is no APIBinding `{binding}`, so the LogicalCluster clean-up removes its \
                 entry; if it does not, remove the entry `{resource}` by hand"
            ));
        } else if !crd {
            self.wait(format!("APIBinding `{binding}` to give up {resource}"));
            self.cure(format!("delete APIBinding `{binding}`, or do without this one: both want {resource}"));
        } else if *crd_exists {
            let name = resource.crd_name();
            self.wait(format!("CustomResourceDefinition {name} to be deleted, and its lock on {resource} with it"));
            self.cure(format!("delete CustomResourceDefinition `{name}`, or do without this APIBinding"));
        } else if let Some(time) = over {
            self.wait(format!("the lock on {resource} to be over, just after {time}, or its CRD to come"));
        } else {
            let annotation = layer.unwrap_or(Layer::Legacy).annotation();
            self.wait(format!("the entry `{resource}` in annotation {annotation} of {home} to go"));
            if self.snapshot.layout() == Layout::Split {
                self.cure(format!(
                    "remove the entry `{resource}` from annotation {annotation} of {home}: it is held for a \
                     CustomResourceDefinition that is not there, and has no expiry"
                ));
            }
        }
    }

    fn last_try(&mut self) {
        let Some(reported) = self.explanation.failed_before() else { return };
        if reported.reason == "APIResourceSchemaInvalid" {
            self.wait("another schema in the APIExport");
            self.cure("the owner of the APIExport publishes a schema that the server accepts");
        } else {
            self.wait("the next try to succeed");
        }
    }
}
