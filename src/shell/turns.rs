//! Turns: of the workers of one process, one at a time writes the locks of a workspace.
//!
//! The others would plan on locks that are just being changed, and lose: a conflict costs two requests more.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as Turnstile, OwnedMutexGuard};

use crate::api::ClusterName;

type Waiting = BTreeMap<ClusterName, Arc<Turnstile<()>>>;

/// Whose turn it is, in each workspace in which somebody writes.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    waiting: Arc<Mutex<Waiting>>,
}

/// A turn; it is over when this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    waiting: Arc<Mutex<Waiting>>,
    cluster: ClusterName,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Turns {
    /// Waits for a turn. True: it had to wait, so others may have written.
    pub async fn take(&self, cluster: &ClusterName) -> (Turn, bool) {
        let turnstile = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.entry(cluster.clone()).or_default().clone()
        };
        let (guard, has_waited) = match turnstile.clone().try_lock_owned() {
            Ok(guard) => (guard, false),
            Err(_) => (turnstile.lock_owned().await, true),
        };
        (Turn { waiting: self.waiting.clone(), cluster: cluster.clone(), guard: Some(guard) }, has_waited)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.guard = None;
        // Who waits has a hand on it as well, and hands are only laid on it under this lock.
        if waiting.get(&self.cluster).is_some_and(|turnstile| Arc::strong_count(turnstile) == 1) {
            waiting.remove(&self.cluster);
        }
    }
}
