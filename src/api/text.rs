//! A string that costs nothing to copy.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use arcstr::{ArcStr, literal};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An immutable string that is shared when it is cloned.
///
/// The wire types use it for every name, identity and message, so that an object
/// read once can stay in a snapshot, in a plan and in an effect without being copied.
/// An empty `Text` stands for a field that is absent. It takes one word, since there are dozens in every binding.
#[derive(Clone, Default, Eq)]
pub struct Text(ArcStr);

impl Text {
    /// The string itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True for the empty string, which stands for an absent field.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same, without an allocation for what every condition says.
    pub(crate) fn of_word(word: &str) -> Self {
        Self(match word {
            "True" => literal!("True"),
            "False" => literal!("False"),
            "Unknown" => literal!("Unknown"),
            "Ready" => literal!("Ready"),
            "APIExportValid" => literal!("APIExportValid"),
            "BindingUpToDate" => literal!("BindingUpToDate"),
            "InitialBindingCompleted" => literal!("InitialBindingCompleted"),
            "Error" => literal!("Error"),
            "Info" => literal!("Info"),
            "Warning" => literal!("Warning"),
            other => return other.into(),
        })
    }

    /// True if nobody else has this very string.
    pub(crate) fn is_alone(&self) -> bool {
        ArcStr::strong_count(&self.0) == Some(1)
    }

    /// True if both are one string in memory.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        ArcStr::ptr_eq(&self.0, &other.0)
    }
}

/// Shared copies are the same without a look at their bytes.
impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || self.as_str() == other.as_str()
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.is_same(other) { Ordering::Equal } else { self.as_str().cmp(other.as_str()) }
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&String> for Text {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<fmt::Arguments<'_>> for Text {
    fn from(text: fmt::Arguments<'_>) -> Self {
        Self::from(text.to_string())
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Reader(|text: &str| Text::from(text)))
    }
}

/// Reads what is nearly always one of a few words; `null` is the empty text.
pub(crate) fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
    struct Word(Text);

    impl<'de> Deserialize<'de> for Word {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_str(Reader(Text::of_word)).map(Word)
        }
    }

    Ok(Option::<Word>::deserialize(deserializer)?.map(|word| word.0).unwrap_or_default())
}

struct Reader<F>(F);

impl<F: FnOnce(&str) -> Text> serde::de::Visitor<'_> for Reader<F> {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<Text, E> {
        Ok(self.0(text))
    }
}
