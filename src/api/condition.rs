//! Conditions in the style of Cluster API (SPEC 1).

use serde::{Deserialize, Serialize};

use super::strict::null;
use super::text::{Text, word};
use super::wire::{Extra, is_default};

/// One condition of an APIBinding.
///
/// Values other than those named in the fields' documentation are carried as they came.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the condition is about; one of each type.
    #[serde(rename = "type", default, deserialize_with = "word")]
    pub kind: Text,
    /// `True`, `False` or `Unknown`.
    #[serde(default, deserialize_with = "word")]
    pub status: Text,
    /// `Error`, `Warning` or `Info`; only where the status is `False`.
    #[serde(default, deserialize_with = "word", skip_serializing_if = "is_default")]
    pub severity: Text,
    /// When the condition last changed, RFC 3339 in UTC, whole seconds.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub last_transition_time: Text,
    /// Why, in one CamelCase word.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub reason: Text,
    /// Why, for a person.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub message: Text,
    /// Further fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Condition {
    /// The summary of the others.
    pub const READY: &str = "Ready";
    /// The export was found and can be bound.
    pub const API_EXPORT_VALID: &str = "APIExportValid";
    /// All the export's resources were bound once. Never leaves `True`.
    pub const INITIAL_BINDING_COMPLETED: &str = "InitialBindingCompleted";
    /// What the export now offers is bound.
    pub const BINDING_UP_TO_DATE: &str = "BindingUpToDate";

    /// True if the status is `True`.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }

    /// True if the status is `True`, and no more is said.
    pub(crate) fn is_plainly_true(&self) -> bool {
        self.is_true() && self.severity.is_empty() && self.reason.is_empty() && self.message.is_empty()
    }

    /// By what conditions are sorted: `Ready` first, then by type.
    pub(crate) fn rank(&self) -> (bool, &Text) {
        (self.kind != Self::READY, &self.kind)
    }

    /// True if both say the same, whatever their times.
    pub(crate) fn says(&self, other: &Condition) -> bool {
        (&self.status, &self.severity, &self.reason, &self.message)
            == (&other.status, &other.severity, &other.reason, &other.message)
    }
}
