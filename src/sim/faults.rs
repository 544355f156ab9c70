//! What can go wrong: each fault a switch.

use std::fmt;
use std::str::FromStr;

/// Something that goes wrong.
///
/// None of them is a lie of the server: where it answers that an object exists or was changed by another,
/// that is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// A request never reaches the server.
    RequestLost,
    /// A request takes effect, and its answer is lost.
    AnswerLost,
    /// Somebody else writes the object just before: 409.
    Conflict,
    /// Somebody else creates the CRD just before: 409.
    AlreadyExists,
    /// 422, for what the server would take at another time.
    Invalid,
    /// 403.
    Forbidden,
    /// 429 with `Retry-After`.
    TooManyRequests,
    /// 504.
    Timeout,
    /// 500.
    Internal,
    /// 503.
    Unavailable,
    /// 410.
    Gone,
    /// A controller dies at a request, before or after it was sent, and starts again with an empty
    /// memory. What was sent may arrive after that.
    Crash,
    /// Two controllers with workers each: one is a leader that does not know that it is no longer one.
    TwoControllers,
    /// Clocks of controllers are wrong, and step.
    Clock,
    /// Watches of each kind lag, each as it likes.
    WatchLag,
    /// Watches tell again what they have told.
    WatchDouble,
    /// Watches tell only the last of several changes of an object.
    WatchCoalesce,
    /// Watches break; the kind is listed again.
    WatchDrop,
    /// Watches start again in the past: the list is older than what was told before.
    WatchPast,
    /// The cache server is far behind.
    CacheLag,
    /// Workers plan on clones of the snapshot that were taken when their pass began.
    StaleClones,
    /// The admission of CRDs decides on locks that it read some time ago. See `DEVIATIONS.md`, "What
    /// `exclusive` cannot promise".
    StaleAdmission,
    /// In the single layout, the clean-up of LogicalClusters decides on bindings that it read some time
    /// ago. See there.
    StaleCleanup,
    /// People edit locks and statuses by hand. See there.
    Vandals,
}

impl Fault {
    /// All of them, in order.
    pub const ALL: [Self; 24] = [
        Self::RequestLost,
        Self::AnswerLost,
        Self::Conflict,
        Self::AlreadyExists,
        Self::Invalid,
        Self::Forbidden,
        Self::TooManyRequests,
        Self::Timeout,
        Self::Internal,
        Self::Unavailable,
        Self::Gone,
        Self::Crash,
        Self::TwoControllers,
        Self::Clock,
        Self::WatchLag,
        Self::WatchDouble,
        Self::WatchCoalesce,
        Self::WatchDrop,
        Self::WatchPast,
        Self::CacheLag,
        Self::StaleClones,
        Self::StaleAdmission,
        Self::StaleCleanup,
        Self::Vandals,
    ];

    /// Its name, as lists of faults have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RequestLost => "request-lost",
            Self::AnswerLost => "answer-lost",
            Self::Conflict => "conflict",
            Self::AlreadyExists => "already-exists",
            Self::Invalid => "invalid",
            Self::Forbidden => "forbidden",
            Self::TooManyRequests => "too-many-requests",
            Self::Timeout => "timeout",
            Self::Internal => "internal",
            Self::Unavailable => "unavailable",
            Self::Gone => "gone",
            Self::Crash => "crash",
            Self::TwoControllers => "two-controllers",
            Self::Clock => "clock",
            Self::WatchLag => "watch-lag",
            Self::WatchDouble => "watch-double",
            Self::WatchCoalesce => "watch-coalesce",
            Self::WatchDrop => "watch-drop",
            Self::WatchPast => "watch-past",
            Self::CacheLag => "cache-lag",
            Self::StaleClones => "stale-clones",
            Self::StaleAdmission => "stale-admission",
            Self::StaleCleanup => "stale-clean-up",
            Self::Vandals => "vandals",
        }
    }

    /// True of what law `exclusive` cannot promise anything against. Such faults have to be asked for by
    /// name.
    pub fn is_beyond_promise(self) -> bool {
        matches!(self, Self::StaleAdmission | Self::StaleCleanup | Self::Vandals)
    }

    fn bit(self) -> u32 {
        1 << (self as u32)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of faults.
///
/// ```
/// use apibinding::sim::{Fault, Faults};
///
/// let faults: Faults = "crash,answer-lost".parse()?;
/// assert!(faults.has(Fault::Crash) && !faults.has(Fault::Clock));
/// assert_eq!(faults.to_string(), "answer-lost,crash");
/// assert_eq!("all".parse::<Faults>()?, Faults::all());
/// assert!("crashes".parse::<Faults>().is_err());
/// # Ok::<(), apibinding::sim::UnknownFault>(())
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    bits: u32,
}

impl Faults {
    /// None.
    pub fn none() -> Self {
        Self::default()
    }

    /// All that the laws hold against: all but those [beyond promise](Fault::is_beyond_promise).
    pub fn all() -> Self {
        Fault::ALL.into_iter().filter(|fault| !fault.is_beyond_promise()).collect()
    }

    /// True if the fault is among them.
    pub fn has(self, fault: Fault) -> bool {
        self.bits & fault.bit() != 0
    }

    /// These and another one.
    #[must_use]
    pub fn with(self, fault: Fault) -> Self {
        Self { bits: self.bits | fault.bit() }
    }

    /// These without one.
    #[must_use]
    pub fn without(self, fault: Fault) -> Self {
        Self { bits: self.bits & !fault.bit() }
    }

    /// One after the other.
    pub fn iter(self) -> impl Iterator<Item = Fault> {
        Fault::ALL.into_iter().filter(move |fault| self.has(*fault))
    }
}

impl FromIterator<Fault> for Faults {
    fn from_iter<I: IntoIterator<Item = Fault>>(faults: I) -> Self {
        faults.into_iter().fold(Self::none(), Self::with)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::none() {
            return f.write_str("none");
        }
        if *self == Self::all() {
            return f.write_str("all");
        }
        let names: Vec<&str> = self.iter().map(Fault::as_str).collect();
        f.write_str(&names.join(","))
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faults({self})")
    }
}

/// A word that is the name of no fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no fault: say `all`, `none`, or some of {}, with commas between", names())]
pub struct UnknownFault {
    /// The word.
    pub name: String,
}

fn names() -> String {
    Fault::ALL.map(Fault::as_str).join(", ")
}

impl FromStr for Faults {
    type Err = UnknownFault;

    /// Reads `all`, `none`, or names with commas between, `all` among them.
    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        let mut faults = Self::none();
        for name in text.split(',').map(str::trim) {
            match name {
                "none" | "" => {}
                "all" => faults.bits |= Self::all().bits,
                name => {
                    let fault = Fault::ALL.into_iter().find(|fault| fault.as_str() == name);
                    faults = faults.with(fault.ok_or_else(|| UnknownFault { name: name.into() })?);
                }
            }
        }
        Ok(faults)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_read_as_it_is_written() {
        for fault in Fault::ALL {
            assert_eq!(fault.to_string().parse(), Ok(Faults::none().with(fault)));
        }
        for faults in
            [Faults::none(), Faults::all(), Faults::all().with(Fault::Vandals), Faults::all().without(Fault::Gone)]
        {
            assert_eq!(faults.to_string().parse(), Ok(faults));
        }
        assert!(Faults::all().iter().eq(Fault::ALL[..21].iter().copied()));
    }
}
