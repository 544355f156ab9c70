//! A shard: some logical clusters, on a server of their own.

use super::parties::Parties;
use super::{Chance, Kcp};
use crate::api::{BindingKey, ClusterName};

/// One shard, with the parties that work on it.
#[derive(Clone, Debug)]
pub(super) struct Shard {
    pub kcp: Kcp,
    pub parties: Parties,
    /// The version at which the world begins: nobody can have seen it as it was before.
    pub begin: u64,
    /// The version of the server up to which everybody was told that there is something to hear.
    pub told: u64,
}

/// On which of so many shards a logical cluster is. What belongs to the system is on each; one object of it
/// is meant by its name.
pub(super) fn shard_of(key: &BindingKey, shards: usize) -> usize {
    let text = if is_everywhere(&key.cluster) { key.name.as_str() } else { key.cluster.as_str() };
    usize::try_from(Chance::of(0, text).below(shards as u64)).unwrap_or(0)
}

/// True of the logical clusters that each shard has for itself.
pub(super) fn is_everywhere(cluster: &ClusterName) -> bool {
    cluster.as_str().starts_with("system:")
}
