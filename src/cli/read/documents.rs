//! From text to objects: documents one after the other, and lists taken apart.

use std::sync::Arc;

use apibinding::api::{Kind, Object};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::super::unknown;
use super::error::Fault;
use super::{Found, ReadError, Source, shown};

/// Deeper than any list that a person makes. Each list around an object has the object walked
/// over once more, so without a limit a small file could take forever.
const NESTED_LISTS: usize = 8;

/// Adds the objects of a file to `found`, and says how many documents it has that are not empty.
pub(super) fn read(file: &str, text: &str, found: &mut Found) -> Result<usize, ReadError> {
    let documents = split(file, text)?;
    let file: Arc<str> = file.into();
    for (index, document) in documents.iter().enumerate() {
        let at = Source { file: Arc::clone(&file), document: index + 1, items: Vec::new() };
        take(document, at, &Inherited::default(), found)?;
    }
    Ok(documents.len())
}

/// The documents of a text that are not null.
///
/// What begins like JSON is read as JSON, which is many times faster. If it turns out to be none,
/// it may still be YAML, like `{a: 1}`, or JSON between lines of `---`. If it is neither, it was
/// meant to be what can be read to a later line.
fn split(file: &str, text: &str) -> Result<Vec<Box<RawValue>>, ReadError> {
    let mut not_json = None;
    if text.trim_start().starts_with(['{', '[']) {
        match serde_json::Deserializer::from_str(text).into_iter().collect::<Result<Vec<_>, _>>() {
            Ok(documents) => return Ok(without_nulls(documents)),
            Err(cut_off) if cut_off.is_eof() => return Err(syntax(file, "JSON", (&cut_off).into())),
            Err(wrong) => not_json = Some(Fault::from(&wrong)),
        }
    }
    let documents: Vec<Document> = serde_saphyr::from_multiple_with_options(text, yaml()).map_err(|wrong| {
        let not_yaml = Fault::from(&wrong);
        match not_json {
            Some(fault) if fault.line >= not_yaml.line => syntax(file, "JSON", fault),
            _ => syntax(file, "YAML", not_yaml),
        }
    })?;
    Ok(without_nulls(documents.into_iter().map(|Document(json)| json).collect()))
}

fn without_nulls(mut documents: Vec<Box<RawValue>>) -> Vec<Box<RawValue>> {
    documents.retain(|document| document.get() != "null");
    documents
}

fn syntax(file: &str, language: &'static str, fault: Fault) -> ReadError {
    let Fault { line, column, problem } = fault;
    ReadError::Syntax { file: shown(file).to_owned(), language, line, column, problem }
}

/// How YAML is read: as kubectl does, since a file should mean the same here and there. `yes`, `on`
/// and `y` are booleans, `0755` is octal, a time is text, and keys are the text that they are
/// written as. A key given twice is an error. Whole numbers of up to 64 bits keep their digits;
/// larger ones are floats, as in JSON.
fn yaml() -> serde_saphyr::Options {
    let any = usize::MAX;
    serde_saphyr::options! {
        legacy_octal_numbers: true,
        reject_unsupported_tags: true,
        with_snippet: false,
        emit_comments: false,
        // The input is in memory, so its size is no danger. What makes small ones explode, aliases
        // and depth, stays limited.
        budget: serde_saphyr::budget! {
            max_events: any, max_nodes: any, max_documents: any, max_total_scalar_bytes: any,
        },
    }
}

/// A document of YAML, as JSON.
struct Document(Box<RawValue>);

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        to_raw_value(&value).map(Document).map_err(serde::de::Error::custom)
    }
}

/// What the items of a list can leave out. A plain `List` has nothing to give.
#[derive(Default)]
struct Inherited {
    api_version: String,
    kind: String,
}

/// What tells an object, and a list of objects.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(default)]
    api_version: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default, borrow)]
    items: Option<&'a RawValue>,
    #[serde(default, borrow)]
    metadata: Option<&'a RawValue>,
}

/// What tells whether a list is whole.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListMetadata {
    #[serde(rename = "continue")]
    next_page: Option<String>,
    resource_version: Option<String>,
}

/// What a server says where it has no objects to give.
#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    code: Option<i64>,
}

fn take(json: &RawValue, at: Source, inherited: &Inherited, found: &mut Found) -> Result<(), ReadError> {
    if !json.get().starts_with('{') {
        return Err(ReadError::NotAnObject { at: at.into() });
    }
    let Head { api_version, kind, items, metadata } = parse(json, &at)?;
    let api_version = inherit(api_version, "apiVersion", &inherited.api_version, &at)?;
    let kind = inherit(kind, "kind", &inherited.kind, &at)?;
    if (api_version.as_str(), kind.as_str()) == ("v1", "Status") {
        let Refusal { message, code } = parse(json, &at)?;
        let message = message.filter(|message| !message.is_empty()).unwrap_or_else(|| "it does not say why".to_owned());
        return Err(ReadError::Status { at: at.into(), code, message });
    }
    // Without items it is an object whose kind happens to end so, unless it is a list of ours.
    let is_list = |item: &&str| items.is_some() || item.is_empty() || Kind::of(&api_version, item).is_some();
    let Some(item_kind) = kind.strip_suffix("List").filter(is_list) else {
        match object(json, &at, &api_version, &kind)? {
            Some(object) => {
                for field in unknown::fields(object.kind(), json.get()) {
                    found.unknown.push(|| format!("{at}: {} {}: {field}", object.kind(), object.key()));
                }
                found.objects.push((at, object));
            }
            None => *found.others.entry(kind).or_default() += 1,
        }
        return Ok(());
    };
    if at.items.len() == NESTED_LISTS {
        return Err(ReadError::NestedLists { at: at.into() });
    }
    let metadata: Option<ListMetadata> = metadata.map_or(Ok(None), |metadata| parse(metadata, &at))?;
    let ListMetadata { next_page, resource_version } = metadata.unwrap_or_default();
    let page = (kind.clone(), resource_version.unwrap_or_default());
    if next_page.is_some_and(|next| !next.is_empty()) {
        // The last of the pages that are there is the one that another should follow.
        found.pages.insert(page, at.clone());
    } else {
        found.last_pages.insert(page);
    }
    let items: Vec<&RawValue> = items.map_or(Ok(Vec::new()), |items| parse(items, &at))?;
    let inherited = match item_kind {
        "" => Inherited::default(),
        kind => Inherited { kind: kind.to_owned(), api_version },
    };
    for (index, item) in items.into_iter().enumerate() {
        take(item, at.item(index), &inherited, found)?;
    }
    Ok(())
}

/// A string that every object needs, from the list around it if it has none.
fn inherit(own: Option<String>, field: &'static str, inherited: &str, at: &Source) -> Result<String, ReadError> {
    match own.filter(|own| !own.is_empty()) {
        Some(own) => Ok(own),
        None if inherited.is_empty() => Err(ReadError::Untyped { at: at.clone().into(), missing: field }),
        None => Ok(inherited.to_owned()),
    }
}

fn parse<'de, T: Deserialize<'de>>(json: &'de RawValue, at: &Source) -> Result<T, ReadError> {
    let mut json = serde_json::Deserializer::from_str(json.get());
    serde_path_to_error::deserialize(&mut json).map_err(|wrong| {
        let Fault { problem, .. } = wrong.inner().into();
        ReadError::Head { at: at.clone().into(), field: wrong.path().to_string(), problem }
    })
}

/// The object, if it is of a kind that the controller reads. One of its kinds in another version
/// is an error: to pass over it would give wrong answers without a word.
fn object(json: &RawValue, at: &Source, api_version: &str, kind: &str) -> Result<Option<Object>, ReadError> {
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let Some(kind) = Kind::ALL.into_iter().find(|known| known.as_str() == kind && known.group() == group) else {
        return Ok(None);
    };
    let wanted = kind.api_version();
    if api_version != wanted {
        let version = wanted.rsplit_once('/').map_or(wanted, |(_, version)| version);
        let resource = format!("{}.{version}.{group}", kind.plural());
        return Err(ReadError::Version { at: at.clone().into(), kind, found: api_version.to_owned(), resource });
    }
    let object = Object::from_json(kind, json.get());
    object.map(Some).map_err(|reason| ReadError::Object { at: at.clone().into(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each object, or other kind, as a line.
    fn told(text: &str) -> Result<String, String> {
        let mut found = Found::default();
        read("w", text, &mut found).map_err(|wrong| wrong.to_string())?;
        let objects = found.objects.iter().map(|(at, object)| format!("{at}: {} {}", object.kind(), object.key()));
        let others = found.others.iter().map(|(kind, count)| format!("{count} {kind}"));
        Ok(objects.chain(others).collect::<Vec<_>>().join("\n"))
    }

    #[track_caller]
    fn check(text: &str, expect: &[&str]) {
        assert_eq!(told(text).unwrap(), expect.join("\n"), "{text}");
    }

    #[track_caller]
    fn check_error(text: &str, expect: &str) {
        let error = told(text).unwrap_err();
        assert!(error.starts_with(expect), "{error}");
    }

    const JSON: &str = r#"{"kind":"LogicalCluster","apiVersion":"core.kcp.io/v1alpha1","metadata":{"name":"a"}}"#;
    const YAML: &str = "kind: LogicalCluster\napiVersion: core.kcp.io/v1alpha1\nmetadata: {name: b}\n";

    #[test]
    fn documents_of_either_language() {
        let [json, yaml] = ["w, document 1: LogicalCluster a", "w, document 1: LogicalCluster b"];
        check(JSON, &[json]);
        check(YAML, &[yaml]);
        check("{kind: LogicalCluster, apiVersion: core.kcp.io/v1alpha1, metadata: {name: b}}", &[yaml]);
        check(&format!("{JSON}\n\n{JSON}"), &[json, "w, document 2: LogicalCluster a"]);
        check(&format!("{JSON}\n---\n{YAML}"), &[json, "w, document 2: LogicalCluster b"]);
        check(&format!("# first\n---\n---\n\n---\n{YAML}"), &[yaml]);
        check(&format!("{JSON} null {JSON}"), &[json, "w, document 2: LogicalCluster a"]);
        check("", &[]);
        check("# nothing\n---\n", &[]);
    }

    #[test]
    fn the_error_is_of_the_language_that_was_meant() {
        check_error(&format!("{JSON}\n{JSON}\n{{\"kind\" 1}}"), "w, line 3, column 9: not valid JSON: expected `:`");
        check_error("{\"kind\": \"A\"\n\"b\": 1}", "w, line 2, column 1: not valid JSON: expected `,` or `}`");
        check_error("{\"kind\":\n", "w, line 2, column 1: not valid JSON: it is cut off");
        check_error(&format!("{JSON}\n---\nkind: [\n"), "w, line 3, column 7: not valid YAML: unclosed bracket");
        check_error("kind: A\n\tb: 1\n", "w, line 1, column 7: not valid YAML: ");
        check_error("a: 1\nb: {c: 1,\n  'c': 2}\n", "w, line 3, column 3: not valid YAML: duplicate mapping key `c`");
    }

    #[test]
    fn scalars_are_as_kubectl_has_them() {
        for (yaml, json) in [
            ("[yes, On, y, 'yes']", r#"[true,true,true,"yes"]"#),
            ("[no, n, FALSE, off]", "[false,false,false,false]"),
            ("[~, null, '', ]", r#"[null,null,""]"#),
            ("[0755, 0o17, 0x1F, 1_000, -5]", "[493,15,31,1000,-5]"),
            ("[18446744073709551615, -9223372036854775808]", "[18446744073709551615,-9223372036854775808]"),
            ("[1.5, .5, 1e3]", "[1.5,0.5,1000.0]"),
            (
                "[2026-06-01T12:00:04Z, 2026-06-01, 10.0.0.1, 100m]",
                r#"["2026-06-01T12:00:04Z","2026-06-01","10.0.0.1","100m"]"#,
            ),
            ("{on: 1, 2: 3, 2.50: 4}", r#"{"2":3,"2.50":4,"on":1}"#),
            ("{a: &x {b: 1}, c: *x, d: {<<: *x, e: 2}}", r#"{"a":{"b":1},"c":{"b":1},"d":{"b":1,"e":2}}"#),
            ("a: |\n  x\n  y\nb: >-\n  x\n  y", r#"{"a":"x\ny\n","b":"x y"}"#),
        ] {
            let documents = split("w", &format!("# YAML\n{yaml}")).unwrap();
            assert_eq!(documents.iter().map(|json| json.get()).collect::<Vec<_>>(), [json], "{yaml}");
        }
        check_error("a: .inf", "w, line 1, column 4: not valid YAML: ");
    }

    #[test]
    fn nothing_explodes() {
        let mut bomb = "x0: &x0 [a, a, a, a, a, a, a, a, a, a]\n".to_owned();
        for level in 1..30 {
            let ten = vec![format!("*x{}", level - 1); 10].join(", ");
            bomb.push_str(&format!("x{level}: &x{level} [{ten}]\n"));
        }
        check_error(&bomb, "w, line ");
        for deep in ["[", "- ", "{a: ", "? ", "{\"kind\":", "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":["] {
            check_error(&deep.repeat(100_000), "w, line ");
        }
    }

    #[test]
    fn items_say_what_they_are_or_their_list_does() {
        check(
            "apiVersion: apis.kcp.io/v1alpha2\nkind: APIBindingList\nitems:\n- metadata: {name: a}\n\
             - kind: APIExport\n  metadata: {name: b}\n- {kind: Cow, apiVersion: v1}\n",
            &["w, document 1, items[0]: APIBinding a", "w, document 1, items[1]: APIExport b", "1 Cow"],
        );
        check_error(
            r#"{"apiVersion":"v1","kind":"List","items":[{"kind":"Cow","metadata":{}}]}"#,
            "w, document 1, items[0]: the object has no `apiVersion`: add it",
        );
    }

    #[test]
    fn lists_in_lists() {
        let list = |items: &str| format!(r#"{{"apiVersion":"v1","kind":"List","items":[{items}]}}"#);
        check(
            &list(&format!("{},{JSON}", list(&format!("{JSON}, {JSON}")))),
            &[
                "w, document 1, items[0].items[0]: LogicalCluster a",
                "w, document 1, items[0].items[1]: LogicalCluster a",
                "w, document 1, items[1]: LogicalCluster a",
            ],
        );
        let deep = (0..9).fold("{}".to_owned(), |inner, _| list(&inner));
        check_error(&deep, &format!("w, document 1, items[0]{}: lists are nested too deep", ".items[0]".repeat(7)));
    }

    #[test]
    fn a_list_can_be_empty() {
        for items in ["items: []", "items: null", "items:", ""] {
            check(&format!("apiVersion: v1\nkind: List\n{items}"), &[]);
            check(&format!("apiVersion: apis.kcp.io/v1alpha2\nkind: APIBindingList\n{items}"), &[]);
        }
        check("apiVersion: g/v1\nkind: PriceList", &["1 PriceList"]);
        check("apiVersion: g/v1\nkind: Shop\nitems: 5", &["1 Shop"]);
        check_error("apiVersion: v1\nkind: List\nitems: {}", "w, document 1: invalid type: map, expected a sequence");
    }

    #[test]
    fn what_is_no_object_or_does_not_say_which_is_an_error() {
        for none in ["hello", "[{}]", "5", "apiVersion: g/v1\nkind: CowList\nitems:\n- 5\n"] {
            let error = told(none).unwrap_err();
            assert!(error.contains(": this is no object: give each object as a document"), "{error}");
        }
        check_error("metadata: {}", "w, document 1: the object has no `apiVersion`: add it");
        check_error("apiVersion: v1\nkind: ''", "w, document 1: the object has no `kind`");
        check_error(
            "apiVersion: 1\nkind: A",
            "w, document 1: apiVersion: invalid type: integer `1`, expected a string",
        );
    }

    #[test]
    fn a_kind_in_another_group_or_version() {
        for api_version in ["example.test/v1alpha2", "v1alpha2"] {
            check(&format!("apiVersion: {api_version}\nkind: APIBinding\n"), &["1 APIBinding"]);
        }
        check_error(
            "apiVersion: apis.kcp.io/v1alpha1\nkind: APIExport\n",
            "w, document 1: this is an APIExport of apis.kcp.io/v1alpha1, but only apis.kcp.io/v1alpha2 is read: get it \
             as that, with `kubectl get apiexports.v1alpha2.apis.kcp.io -o yaml`",
        );
    }

    #[test]
    fn a_field_that_does_not_fit_is_named() {
        let binding = "apiVersion: apis.kcp.io/v1alpha2\nkind: APIBinding\nmetadata: {name: b}\nspec:\n  ";
        check_error(
            &format!("{binding}reference: {{export: {{name: 5}}}}"),
            "w, document 1: APIBinding b: spec.reference.export.name: invalid type: integer `5`, expected a string: \
             put it in quotes",
        );
        check_error(
            &format!("{binding}permissionClaims: {{}}"),
            "w, document 1: APIBinding b: spec.permissionClaims: invalid type: map",
        );
    }

    #[test]
    fn the_number_of_documents_costs_nothing_extra() {
        let mut found = Found::default();
        assert_eq!(read("w", &"---\napiVersion: v1\nkind: A\n".repeat(100_000), &mut found).unwrap(), 100_000);
        assert_eq!(found.others["A"], 100_000);
    }
}
