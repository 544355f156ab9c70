//! Objects as bytes: parse, reconcile.

use apibinding::api::Object;
use apibinding::effect::Outcome;
use apibinding::pass::{Pass, Step};
use apibinding::snapshot::{Change, Layout, Origin, Snapshot};
use apibinding::{reconcile, release, wakeup};

/// Whatever parses is written as it was read, is planned the same way twice, and every pass ends.
pub fn objects(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let layout = if data.len() % 4 == 0 { Layout::Single } else { Layout::Split };
    let mut snapshot = Snapshot::new(layout);
    snapshot.set_unix_time(1_780_315_200);
    let mut bindings = Vec::new();
    for (number, line) in text.lines().take(32).enumerate() {
        let object = match Object::from_typed_json(line) {
            Ok(object) => object,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                continue;
            }
        };
        let written = serde_json::to_string(&object).unwrap();
        let again = Object::from_typed_json(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
        assert_eq!(again, object, "read, written and read again");
        if let Object::ApiBinding(binding) = &object {
            bindings.push(binding.clone());
        }
        let origin = if number % 5 == 4 { Origin::Global } else { Origin::Local };
        snapshot.apply(Change::Put { origin, object: Box::new(object) });
    }
    for binding in &bindings {
        assert_eq!(reconcile(&snapshot, binding), reconcile(&snapshot, binding));
    }
    for key in wakeup::all(&snapshot) {
        release(&snapshot, &key);
        let mut pass = Pass::new(key.clone());
        let steps = (0..200).take_while(|_| match pass.poll(&snapshot) {
            Step::Act(_) => {
                pass.observe(Outcome::NoAnswer("nobody is there".into()));
                true
            }
            _ => false,
        });
        assert!(steps.count() < 200, "{key} does not end");
    }
}
