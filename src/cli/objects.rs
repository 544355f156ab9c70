//! The objects of a world, whole: what a server would have.

use std::collections::BTreeMap;

use apibinding::api::{BindingKey, Kind, Object};

/// The objects that the controller reads from the server, or writes, by kind and name.
#[derive(Debug, Default)]
pub struct Objects {
    by_key: BTreeMap<(Kind, BindingKey), Object>,
    /// The highest resourceVersion so far.
    version: u128,
}

impl Objects {
    /// An object.
    pub fn get(&self, kind: Kind, key: &BindingKey) -> Option<&Object> {
        // A look-up by parts of a pair needs the pair.
        self.by_key.get(&(kind, key.clone()))
    }

    /// Puts an object, as it is.
    pub fn put(&mut self, object: Object) {
        self.by_key.insert((object.kind(), object.key()), object);
    }

    /// Notes a resourceVersion that is in use.
    pub fn note_version(&mut self, object: &Object) {
        let version = object.metadata().resource_version.as_deref().and_then(|version| version.parse().ok());
        self.version = self.version.max(version.unwrap_or_default());
    }

    /// Gives the object a resourceVersion that none has had before.
    pub fn renew_version(&mut self, object: &mut Object) {
        self.version = self.version.saturating_add(1);
        object.metadata_mut().resource_version = Some(self.version.to_string());
    }
}

/// Gives an object without a uid one that is told by what it is called, so that the copies of one
/// object have the same.
pub fn name_uid(object: &mut Object) {
    if object.metadata().uid.as_deref().unwrap_or_default().is_empty() {
        let (kind, BindingKey { cluster, name }) = (object.kind(), object.key());
        object.metadata_mut().uid = Some(format!("{kind}/{cluster}/{name}"));
    }
}
