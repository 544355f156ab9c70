//! The lock annotations of a LogicalCluster (SPEC 5).

use std::fmt;

use k8s_openapi::jiff::civil::{DateTime, datetime as date_time};
use k8s_openapi::jiff::tz::Offset;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde::de::{IgnoredAny, MapAccess};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::entries::Locks;
use crate::api::{GroupResource, Text};

/// The writers of locks, each with its annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Layer {
    /// The clean-up of LogicalClusters: CRDs that are established.
    Crds,
    /// This controller.
    Bindings,
    /// The admission of CRDs.
    Pending,
    /// Nobody any more in the split layout; everybody in the single one.
    Legacy,
}

impl Layer {
    /// All layers, in the order in which they hold: the first one decides.
    pub const ALL: [Layer; 4] = [Layer::Crds, Layer::Bindings, Layer::Pending, Layer::Legacy];

    /// The annotation's name.
    pub fn annotation(self) -> &'static str {
        match self {
            Layer::Crds => "internal.apis.kcp.io/locks-crds",
            Layer::Bindings => "internal.apis.kcp.io/locks-bindings",
            Layer::Pending => "internal.apis.kcp.io/locks-pending",
            Layer::Legacy => "internal.apis.kcp.io/resource-bindings",
        }
    }
}

/// Who holds a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Lock {
    /// The name of the binding that holds it.
    #[serde(rename = "n", skip_serializing_if = "Text::is_empty")]
    pub name: Text,
    /// True if it is held for a CRD of the workspace.
    #[serde(rename = "c", skip_serializing_if = "is_false")]
    pub crd: bool,
    /// When a lock for a CRD ends, in UTC, if the CRD does not come.
    #[serde(rename = "e", serialize_with = "expiry::serialize", skip_serializing_if = "Option::is_none")]
    pub expiry: Option<DateTime>,
    /// The uid of the binding that holds it, where its writer said so.
    #[serde(rename = "u", skip_serializing_if = "Text::is_empty")]
    pub uid: Text,
}

/// Derived code would refuse a field that is given twice, and take a list; the other writers of locks
/// take the last one, and no list.
impl<'de> Deserialize<'de> for Lock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(field_identifier)]
        enum Field {
            #[serde(rename = "n")]
            Name,
            #[serde(rename = "c")]
            Crd,
            #[serde(rename = "e")]
            Expiry,
            #[serde(rename = "u")]
            Uid,
            #[serde(other)]
            Other,
        }

        struct Visitor;

        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Lock;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map with n, c, e and u")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Lock, A::Error> {
                let mut lock = Lock::default();
                while let Some(field) = fields.next_key()? {
                    match field {
                        Field::Name => lock.name = fields.next_value::<Option<_>>()?.unwrap_or_default(),
                        Field::Crd => lock.crd = fields.next_value::<Option<_>>()?.unwrap_or_default(),
                        Field::Expiry => lock.expiry = fields.next_value::<expiry::Expiry>()?.0,
                        Field::Uid => lock.uid = fields.next_value::<Option<_>>()?.unwrap_or_default(),
                        Field::Other => drop(fields.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(lock)
            }
        }

        deserializer.deserialize_map(Visitor)
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Lock {
    /// How long after its expiry a CRD lock still holds: a request's time limit and some skew
    /// of clocks (D24).
    pub const GRACE: SignedDuration = SignedDuration::from_secs(75);

    /// The lock of a binding; `uid` may be empty.
    pub fn of_binding(name: Text, uid: Text) -> Self {
        Self { name, uid, ..Self::default() }
    }

    /// True if the lock is one of a binding.
    pub fn is_of_binding(&self) -> bool {
        !self.crd && !self.name.is_empty()
    }

    /// True if the entry names anybody (D7).
    pub fn holds(&self) -> bool {
        self.crd || !self.name.is_empty()
    }

    /// The moment after which a CRD lock is past, with the grace of D24. `None`: it has no end.
    pub fn end(&self) -> Option<Timestamp> {
        let end = self.expiry.filter(|_| self.crd)?.saturating_add(Self::GRACE);
        // The last hours of the year 9999 are dates, but no timestamps.
        Some(Offset::UTC.to_timestamp(end).unwrap_or(Timestamp::MAX))
    }
}

/// RFC 3339; read with any offset and fraction, written in UTC and whole seconds.
mod expiry {
    use super::*;

    pub(super) fn serialize<S: Serializer>(time: &Option<DateTime>, serializer: S) -> Result<S::Ok, S::Error> {
        match time.and_then(|time| time.with().subsec_nanosecond(0).build().ok()) {
            Some(time) => serializer.collect_str(&format_args!("{time}Z")),
            None => serializer.serialize_none(),
        }
    }

    pub(super) struct Expiry(pub(super) Option<DateTime>);

    impl<'de> Deserialize<'de> for Expiry {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let Some(text) = Option::<Text>::deserialize(deserializer)? else { return Ok(Self(None)) };
            let expected = &"an RFC 3339 time";
            let wrong = || serde::de::Error::invalid_value(serde::de::Unexpected::Str(&text), expected);
            parse(&text).map(|time| Self(Some(time))).ok_or_else(wrong)
        }
    }

    /// Stricter than the library's parser, which also takes other forms of ISO 8601.
    fn parse(text: &str) -> Option<DateTime> {
        let shape = |text: &str, shape: &str| {
            text.len() == shape.len()
                && text.bytes().zip(shape.bytes()).all(|(found, wanted)| match wanted {
                    b'0' => found.is_ascii_digit(),
                    _ => found == wanted,
                })
        };
        let (date, rest) = text.split_at_checked("0000-00-00T00:00:00".len())?;
        let rest = match rest.strip_prefix('.') {
            Some(fraction) => {
                let zone = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
                (zone.len() < fraction.len()).then_some(zone)?
            }
            None => rest,
        };
        let leap = date.ends_with(":60");
        if !shape(date, "0000-00-00T00:00:00") || leap {
            return None;
        }
        // Digits below nanoseconds say nothing.
        let precise = "0000-00-00T00:00:00.000000000".len();
        let local = text.strip_suffix(rest)?;
        let local: DateTime = local.get(..precise).unwrap_or(local).parse().ok()?;
        let number = |text: &str| text.parse::<i64>().ok();
        let east = match rest.split_at_checked(1)? {
            ("Z", "") => 0,
            (sign @ ("+" | "-"), offset) if shape(offset, "00:00") => {
                let (hours, minutes) = offset.split_once(':')?;
                let (hours, minutes) = (number(hours)?, number(minutes)?);
                let seconds = (hours <= 24 && minutes < 60).then_some((hours * 60 + minutes) * 60)?;
                if sign == "+" { seconds } else { -seconds }
            }
            _ => return None,
        };
        // What an offset moves before the first year that can be written stays at its beginning.
        Some(local.saturating_sub(SignedDuration::from_secs(east)).max(date_time(0, 1, 1, 0, 0, 0, 0)))
    }
}

/// One lock annotation as it was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Annotation {
    /// Not there, or empty.
    #[default]
    Missing,
    /// A map of locks; `null` is an empty one.
    Locks(Locks),
    /// No such map; says why.
    Unreadable(Text),
}

impl Annotation {
    pub(crate) fn read(text: &str) -> Self {
        if text.is_empty() {
            return Self::Missing;
        }
        match Locks::parse(text) {
            Ok(locks) => Self::Locks(locks),
            Err(why) => Self::Unreadable(why.into()),
        }
    }

    /// The locks, if it could be read and is there.
    pub fn locks(&self) -> Option<&Locks> {
        match self {
            Self::Locks(locks) => Some(locks),
            _ => None,
        }
    }

    /// The entry of a resource.
    pub fn get(&self, resource: &GroupResource) -> Option<&Lock> {
        self.locks()?.get(resource)
    }

    /// Why it is unreadable, if it is.
    pub fn why(&self) -> Option<&Text> {
        match self {
            Self::Unreadable(why) => Some(why),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locks(text: &str) -> Locks {
        Annotation::read(text).locks().cloned().unwrap_or_default()
    }

    #[test]
    fn empty_annotations_are_no_locks() {
        assert_eq!(Annotation::read(""), Annotation::Missing);
        for text in ["null", "{}", " { } "] {
            assert!(Annotation::read(text).locks().is_some_and(Locks::is_empty), "{text}");
        }
        assert!(locks("{}").is_canonical());
        assert!(!locks("null").is_canonical());
    }

    #[test]
    fn entries_are_sorted_and_written_compactly() {
        let text = r#"{"b.g":{"c":true,"e":"2026-06-01T14:00:00.7+02:00"}, "a.g":{"u":"1","n":"x","z":0}, "c.g":null}"#;
        let locks = locks(text);
        assert!(!locks.is_canonical());
        let written = r#"{"a.g":{"n":"x","u":"1"},"b.g":{"c":true,"e":"2026-06-01T12:00:00Z"},"c.g":{}}"#;
        assert_eq!(locks.to_text(), written);
        assert_eq!((locks.len(), locks.is_empty(), locks.iter().count()), (3, false, 3));
        assert!(super::Annotation::read(written).locks().is_some_and(Locks::is_canonical));
    }

    #[test]
    fn times_are_read_with_any_offset_and_fraction_and_written_in_utc_and_whole_seconds() {
        for (read, written) in [
            ("2026-06-01T12:00:00Z", "2026-06-01T12:00:00Z"),
            ("2026-06-01T12:00:00.999Z", "2026-06-01T12:00:00Z"),
            ("2026-06-01T12:00:00+02:30", "2026-06-01T09:30:00Z"),
            ("2026-06-01T12:00:00-02:30", "2026-06-01T14:30:00Z"),
            ("2026-06-01T12:00:00.5-00:59", "2026-06-01T12:59:00Z"),
            ("2026-06-01T12:00:00+24:00", "2026-05-31T12:00:00Z"),
        ] {
            let text = |time: &str| format!(r#"{{"a":{{"c":true,"e":"{time}"}}}}"#);
            assert_eq!(locks(&text(read)).to_text(), text(written), "{read}");
        }
        for wrong in ["25:00", "00:60", "99:99"] {
            let text = format!(r#"{{"a":{{"c":true,"e":"2026-06-01T12:00:00+{wrong}"}}}}"#);
            assert!(Annotation::read(&text).why().is_some_and(|why| why.contains("RFC 3339")), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_map_of_locks_says_where() {
        for (text, part) in [
            ("[]", "map"),
            ("5", "map"),
            ("{", "EOF"),
            ("{} x", "trailing"),
            (r#"{"foos.g":7}"#, "foos.g"),
            (r#"{"foos.g":[]}"#, "a map with n, c, e and u"),
            (r#"{"foos.g":{"n":7}}"#, "foos.g.n"),
            (r#"{"foos.g":{"c":"true"}}"#, "foos.g.c"),
            (r#"{"foos.g":{"u":1}}"#, "foos.g.u"),
            (r#"{"foos.g":{"e":"soon"}}"#, "foos.g.e"),
            (r#"{"foos.g":{"e":"2026-06-01 12:00:00Z"}}"#, "RFC 3339"),
            (r#"{"foos.g":{"e":"2026-06-01T12:00:60Z"}}"#, "RFC 3339"),
            (r#"{"foos.g":{"e":"2026-06-01T12:00:00"}}"#, "RFC 3339"),
            (r#"{"foos.g":{"e":"2026-06-01T12:00:00+1:00"}}"#, "RFC 3339"),
            (r#"{"foos.g":{"e":"2026-06-01T12:00:00.Z"}}"#, "RFC 3339"),
            (r#"{"foos.g":{"e":"2026-02-30T12:00:00Z"}}"#, "RFC 3339"),
            (r#"{"foos.g":{"e":""}}"#, "RFC 3339"),
        ] {
            let why = Annotation::read(text).why().map(ToString::to_string).unwrap_or_default();
            assert!(why.contains(part), "{text}: {why}");
        }
    }

    #[test]
    fn of_a_field_or_key_that_is_given_twice_the_last_counts() {
        let twice = locks(r#"{"a":{"n":"x","n":"y"},"b":{"n":"x"},"b":{"c":true}}"#);
        assert_eq!(twice.to_text(), r#"{"a":{"n":"y"},"b":{"c":true}}"#);
        assert!(!twice.is_canonical());
    }

    #[test]
    fn what_is_written_can_be_read_again() {
        for text in [
            r#"{"foos.x":{"c":true,"e":"0000-01-01T00:00:00+01:00"}}"#,
            r#"{"foos.x":{"c":true,"e":"9999-12-31T23:59:59-01:00"}}"#,
            r#"{"foos.":{"n":"a"},"foos-a":{"n":"b"},"":{"n":"c"},".":{"n":"d"}}"#,
        ] {
            let written = locks(text).to_text();
            assert!(Annotation::read(&written).locks().is_some_and(Locks::is_canonical), "{text}: {written}");
        }
        let dots = locks(r#"{"foos.":{"n":"a"},"foos-a":{"n":"b"}}"#);
        for (key, name) in [("foos.", "a"), ("foos-a", "b")] {
            assert_eq!(dots.get(&key.into()).map(|lock| lock.name.as_str()), Some(name));
        }
    }

    #[test]
    fn locks_are_found_by_resource_and_by_name() {
        let locks = locks(r#"{"a.g":{"n":"x"},"b.g":{"n":"y"},"c.g":{"n":"x"},"d.g":{"n":"x","c":true}}"#);
        assert_eq!(locks.get(&"b.g".into()).map(|lock| lock.name.as_str()), Some("y"));
        assert_eq!(locks.get(&"z.g".into()), None);
        let of_x: Vec<&str> = locks.of_name("x").map(|(key, _)| key.as_str()).collect();
        assert_eq!(of_x, ["a.g", "c.g"]);
        assert_eq!(locks.of_name("z").count(), 0);
    }

    #[test]
    fn a_lock_ends_after_its_grace() {
        let end = |text| locks(text).get(&"a".into()).and_then(Lock::end).map(|time| time.to_string());
        assert_eq!(end(r#"{"a":{"c":true,"e":"2026-06-01T12:00:00Z"}}"#).as_deref(), Some("2026-06-01T12:01:15Z"));
        assert_eq!(end(r#"{"a":{"c":true}}"#), None);
        assert_eq!(end(r#"{"a":{"n":"b","e":"2026-06-01T12:00:00Z"}}"#), None, "of a binding");
        let forever = r#"{"a":{"c":true,"e":"9999-12-31T23:59:59Z"}}"#;
        assert_eq!(end(forever), Some(Timestamp::MAX.to_string()));
        assert!(locks(forever).is_canonical());
        let precise = end(r#"{"a":{"c":true,"e":"2026-06-01T12:00:00.12345678901234Z"}}"#);
        assert_eq!(precise.as_deref(), Some("2026-06-01T12:01:15.123456789Z"));
    }
}
