//! What stands behind the question mark.

use percent_encoding::percent_decode_str;

/// The parameters of a request, each as it was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query<'a>(&'a str);

impl<'a> Query<'a> {
    pub fn of(query: &'a str) -> Self {
        Self(query)
    }

    /// All parameters with their values, decoded.
    fn pairs(self) -> impl Iterator<Item = (String, String)> + use<'a> {
        let pairs = self.0.split('&').filter(|pair| !pair.is_empty());
        pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        })
    }

    /// A parameter, `None` where it is not given.
    pub fn find(self, name: &str) -> Option<String> {
        self.pairs().find(|(other, _)| other == name).map(|(_, value)| value)
    }

    /// A parameter, empty where it is not given.
    pub fn text(self, name: &str) -> String {
        self.find(name).unwrap_or_default()
    }

    /// True of a switch that is given, and not as `false` or `0`.
    pub fn is(self, name: &str) -> bool {
        self.find(name).is_some_and(|value| !(value == "0" || value.eq_ignore_ascii_case("false")))
    }

    /// A number; nothing that is none.
    pub fn number(self, name: &str) -> Option<u64> {
        self.find(name)?.parse().ok()
    }
}

fn decoded(text: &str) -> String {
    let text = text.replace('+', " ");
    percent_decode_str(&text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query = Query::of("watch=1&&labelSelector=a%3Db+c&limit=x&force&%ff=%&dryRun=All");
        assert_eq!(query.text("labelSelector"), "a=b c");
        assert_eq!((query.is("watch"), query.is("force"), query.is("pretty")), (true, true, false));
        assert_eq!((query.number("limit"), query.number("watch")), (None, Some(1)));
        assert!(!Query::of("watch=False").is("watch"));
    }
}
