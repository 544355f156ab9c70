//! What others do to exports: they give them an identity, and copy them, and their schemas and
//! conversions, to the cache server (SPEC 13).

use serde_json::json;

use super::{Calls, Duty, is_gone, told};
use crate::api::{BindingKey, Kind};
use crate::sim::Chance;
use crate::sim::kcp::{Event, Kcp, Request, seconds, text_at};
use crate::snapshot::Origin;

pub(super) fn react(event: &Event, calls: &mut Calls<'_>) {
    if !is_gone(event) && text_at(&event.object, &["status", "identityHash"]).is_empty() {
        calls.look(Duty::Identity, event.key.clone());
    }
}

/// Gives an export its identity.
pub(super) fn identify(kcp: &mut Kcp, key: &BindingKey) -> Option<String> {
    let export = kcp.get(Origin::Local, Kind::ApiExport, key)?;
    if !text_at(export, &["status", "identityHash"]).is_empty() {
        return None;
    }
    // An export that is created anew finds the secret of its predecessor.
    let secret = ["namespace", "name"].map(|name| text_at(export, &["spec", "identity", "secretRef", name]));
    let secret = if secret == ["", ""] { ["kcp-system", key.name.as_str()] } else { secret };
    let mut secret = Chance::of(0, &format!("{}|{}/{}", key.cluster, secret.concat(), "identity"));
    let hash: String = (0..4).map(|_| format!("{:016x}", secret.any())).collect();
    let condition = json!({"type": "IdentityValid", "status": "True", "lastTransitionTime": seconds(kcp.now())});
    let patch = json!({"status": {"identityHash": hash, "conditions": [condition]}});
    let request = Request::merge(Kind::ApiExport, key.cluster.clone(), key.name.clone(), patch).of_status();
    Some(told(kcp, request.managed_by(super::KCP), format!("gives APIExport {key} its identity")))
}

/// Brings the cache server's copy up to date.
pub(super) fn copy(kcp: &mut Kcp, kind: Kind, key: &BindingKey) -> Option<String> {
    let before = kcp.version();
    kcp.replicate(kind, key);
    (kcp.version() > before).then(|| format!("copies {kind} {key} to the cache server"))
}
