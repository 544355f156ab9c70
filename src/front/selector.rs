//! Which objects of a list or a watch are meant.

use serde_json::Value;

use super::refusal;
use super::reply::Reply;

/// What the labels and the name of an object have to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Selector {
    name: Option<(String, bool)>,
    labels: Vec<(String, Wanted)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Wanted {
    There,
    NotThere,
    In(Vec<String>),
    NotIn(Vec<String>),
}

impl Selector {
    /// Reads `fieldSelector` and `labelSelector`.
    pub fn read(fields: &str, labels: &str) -> Result<Self, Reply> {
        let mut selector = Self::default();
        for term in fields.split(',').filter(|term| !term.is_empty()) {
            let (name, value, is_equal) = match term.split_once("!=") {
                Some((name, value)) => (name, value, false),
                None => {
                    let (name, value) = term.split_once('=').unwrap_or((term, ""));
                    (name, value.trim_start_matches('='), true)
                }
            };
            match name.trim() {
                "metadata.name" => selector.name = Some((value.into(), is_equal)),
                // All objects of a cluster are in no namespace.
                "metadata.namespace" => {}
                other => return Err(refusal::bad_request(format!("field label not supported: {other}"))),
            }
        }
        for term in terms(labels).into_iter().map(str::trim).filter(|term| !term.is_empty()) {
            let term = wanted(term).ok_or_else(|| {
                refusal::bad_request(format!("unable to parse requirement: {term:?} is no label selector"))
            })?;
            selector.labels.push(term);
        }
        Ok(selector)
    }

    /// True if it takes everything.
    pub fn is_empty(&self) -> bool {
        self.name.is_none() && self.labels.is_empty()
    }

    /// True of an object that is meant.
    pub fn takes(&self, object: &Value) -> bool {
        if self.is_empty() {
            return true;
        }
        let metadata = object.get("metadata");
        let name = metadata.and_then(|metadata| metadata.get("name")).and_then(Value::as_str).unwrap_or_default();
        let labels = metadata.and_then(|metadata| metadata.get("labels"));
        self.name.as_ref().is_none_or(|(wanted, is_equal)| (wanted == name) == *is_equal)
            && self.labels.iter().all(|(label, wanted)| {
                let found = labels.and_then(|labels| labels.get(label)).and_then(Value::as_str);
                match wanted {
                    Wanted::There => found.is_some(),
                    Wanted::NotThere => found.is_none(),
                    Wanted::In(values) => found.is_some_and(|found| values.iter().any(|value| value == found)),
                    Wanted::NotIn(values) => found.is_none_or(|found| values.iter().all(|value| value != found)),
                }
            })
    }
}

/// Splits at the commas that are not in parentheses.
fn terms(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(|letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    })
    .collect()
}

fn wanted(term: &str) -> Option<(String, Wanted)> {
    let label = |text: &str| {
        let is_label = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
        let text = text.trim();
        (!text.is_empty() && text.chars().all(is_label)).then(|| text.to_owned())
    };
    if let Some(name) = term.strip_prefix('!') {
        return Some((label(name)?, Wanted::NotThere));
    }
    if let Some((name, value)) = term.split_once("!=") {
        return Some((label(name)?, Wanted::NotIn(vec![value.trim().into()])));
    }
    if let Some((name, value)) = term.split_once('=') {
        return Some((label(name)?, Wanted::In(vec![value.trim_start_matches('=').trim().into()])));
    }
    let Some((head, values)) = term.split_once('(') else { return Some((label(term)?, Wanted::There)) };
    let values = values.strip_suffix(')')?.split(',').map(|value| value.trim().to_owned()).collect();
    let (name, operator) = head.trim().rsplit_once(' ')?;
    match operator {
        "in" => Some((label(name)?, Wanted::In(values))),
        "notin" => Some((label(name)?, Wanted::NotIn(values))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(fields: &str, labels: &str, expect: bool) {
        let object = json!({"metadata": {"name": "geese", "labels": {"a": "b", "x.io/c": ""}}});
        let Ok(selector) = Selector::read(fields, labels) else { panic!("{fields} {labels}") };
        assert_eq!(selector.takes(&object), expect, "{fields} {labels}");
    }

    #[test]
    fn names_and_labels_select() {
        check("", "", true);
        check("metadata.name=geese", "", true);
        check("metadata.name!=geese", "", false);
        check("metadata.name==ducks", "", false);
        check("", "a=b,x.io/c", true);
        check("", "a!=b", false);
        check("", "!a", false);
        check("", "a in (c, b),!z", true);
        check("", "a notin (c,d), q notin (r)", true);
        check("", "a in (c)", false);
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        for (fields, labels) in [("spec.x=1", ""), ("", "a b c"), ("", "a on (b)"), ("", "a in (b"), ("", "ü=1")] {
            assert!(Selector::read(fields, labels).is_err(), "{fields} {labels}");
        }
    }
}
