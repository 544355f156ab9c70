//! How a front is set up.

use std::time::Duration;

use super::access::{Rule, User};
use crate::snapshot::Layout;

/// How a front is set up. The default is what a kcp is that has just been installed.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The port on 127.0.0.1; 0: any that is free.
    pub port: u16,
    /// How the lock annotations are laid out: decides what the others do to them.
    pub layout: Layout,
    /// How long it takes a CRD from its names to being served.
    pub establishing: Duration,
    /// How old a bound CRD has to be to be deleted when nobody uses it. `None`: it never is.
    pub old: Option<Duration>,
    /// Whether objects say who owns which of their fields, as those of a real server do. It costs time.
    pub managed_fields: bool,
    /// Of how many versions it is known what happened: watches from before have to list again.
    pub history: u64,
    /// How long a watch lasts whose client does not say.
    pub watch_limit: Duration,
    /// How often watches that want that are told how far the history has gone; and shortly before they end.
    pub bookmarks: Duration,
    /// Who may come in, each by a token. `None`: everybody, and nobody is asked.
    pub users: Option<Vec<User>>,
    /// What whoever has no rules of its own may do. `None`: everything.
    pub allow: Option<Vec<Rule>>,
    /// How many of the last requests are kept in the log.
    pub log: usize,
    /// Decides how long the others take. `None`: as short as they ever do.
    pub seed: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            port: 0,
            layout: Layout::Single,
            establishing: Duration::from_secs(5),
            old: Some(Duration::from_secs(30 * 60)),
            managed_fields: true,
            history: 10_000,
            watch_limit: Duration::from_secs(30 * 60),
            bookmarks: Duration::from_secs(60),
            users: None,
            allow: None,
            log: 10_000,
            seed: None,
        }
    }
}
