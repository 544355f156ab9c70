//! What a pass has learnt from its effects, and the next plan has to respect (SPEC 11, 12).

use std::collections::BTreeMap;

use crate::api::{GroupResource, Text};

/// What came of creating a bound CRD. It holds for the whole pass (D21).
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Creation {
    /// It is there: created, or there already (D5). Not established, unless the snapshot says so.
    There,
    /// The server says that it is invalid; the causes.
    Invalid(Text),
    /// It failed for another reason.
    Failed,
}

/// The server's answer to "does this binding exist?".
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BindingRead {
    /// No.
    Absent,
    /// Yes, with this uid.
    Present(Text),
    /// Nobody knows: taken for one that exists, with a uid that is not known.
    Unknown,
}

/// The server's answer to "does this CRD exist?".
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CrdRead {
    Absent,
    Present,
    /// Nobody knows: taken for one that exists.
    Unknown,
}

/// The notes of a pass. The first plan has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    /// By the name of the bound CRD.
    pub(crate) creations: BTreeMap<Text, Creation>,
    /// Answers of this attempt.
    pub(crate) bindings: BTreeMap<Text, BindingRead>,
    /// Answers of this attempt.
    pub(crate) crds: BTreeMap<GroupResource, CrdRead>,
    /// Set when the lock could not be written: what the server said, empty if nothing.
    pub(crate) lock_failure: Option<Text>,
    /// Set when another manager owned our annotation (D23).
    pub(crate) force: bool,
    /// Set when the answers were lost too often: nothing more is asked, all counts as unknown.
    pub(crate) ask_no_more: bool,
}

impl Notes {
    pub(crate) fn forget_answers(&mut self) {
        self.bindings.clear();
        self.crds.clear();
    }

    pub(crate) fn has_answers(&self) -> bool {
        !self.bindings.is_empty() || !self.crds.is_empty()
    }

    /// True if an answer that was asked for is not known.
    pub(crate) fn lacks_answers(&self) -> bool {
        self.bindings.values().any(|read| *read == BindingRead::Unknown)
            || self.crds.values().any(|read| *read == CrdRead::Unknown)
    }
}
