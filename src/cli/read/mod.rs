//! From PATH arguments to objects, each with the place where it was found.

mod documents;
mod error;
mod files;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use apibinding::api::Object;

pub use error::ReadError;

use super::notes::Few;

/// What is in the input.
#[derive(Debug, Default)]
pub struct Found {
    /// The objects of the kinds that the controller reads.
    pub objects: Vec<(Source, Object)>,
    /// How many objects of other kinds there are.
    pub others: BTreeMap<String, usize>,
    /// Fields of objects that nobody knows.
    pub unknown: Few,
    /// The lists that go on in another one.
    pages: BTreeMap<Page, Source>,
    /// The lists that end.
    last_pages: BTreeSet<Page>,
}

/// What the pages of one list have in common: their kind, and the resourceVersion at which it was read.
type Page = (String, String);

impl Found {
    /// A note for each list whose end is not there.
    pub fn missing_pages(&self) -> Vec<String> {
        let open = self.pages.iter().filter(|(page, _)| !self.last_pages.contains(*page));
        let told = |((kind, _), at): (&Page, &Source)| {
            format!(
                "{at}: this {kind} is not whole: its metadata.continue says that there is a next page, which is missing"
            )
        };
        open.map(told).collect()
    }
}

/// Reads every object of the files, of the folders but for the files in `except`, and for `-` of
/// `stdin`, which is taken by the first `-` there is: pass the same `stdin` to every call, so that
/// a second `-` is an error and not an empty input.
///
/// Lists are flattened, documents that are null are left out. No document at all is an
/// error, since "nothing to do" would be the wrong answer to a pipe that broke; a list
/// without items is a fair input.
pub fn read<R: Read>(paths: &[PathBuf], except: &[PathBuf], stdin: &mut Option<R>) -> Result<Found, ReadError> {
    let mut found = Found::default();
    let mut documents = 0;
    for path in paths {
        if path.as_os_str() == STDIN {
            let count = documents::read(STDIN, &files::stdin(stdin)?, &mut found)?;
            if count == 0 {
                return Err(ReadError::NothingOnStdin);
            }
            documents += count;
        } else {
            for file in files::expand(path, except)? {
                documents += documents::read(&file.to_string_lossy(), &files::text(&file)?, &mut found)?;
            }
        }
    }
    if documents == 0 && !paths.is_empty() {
        let names: Vec<_> = paths.iter().map(|path| path.to_string_lossy()).collect();
        return Err(ReadError::Nothing { paths: names.join(", ") });
    }
    Ok(found)
}

/// The same, of a text that was not read of a file.
#[cfg(feature = "shell")]
pub fn read_text(name: &str, text: &str) -> Result<Found, ReadError> {
    let mut found = Found::default();
    documents::read(name, text, &mut found)?;
    Ok(found)
}

/// How standard input is called, in arguments and in [`Source::file`].
pub const STDIN: &str = "-";

fn shown(file: &str) -> &str {
    if file == STDIN { "standard input" } else { file }
}

/// Where an object was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path as it was given, below a folder with the file's name, or `-`.
    pub file: Arc<str>,
    /// Which document of the file, from 1. Empty ones do not count.
    pub document: usize,
    /// The way through lists inside the document, from 0: `[3, 0]` is `items[3].items[0]`.
    pub items: Vec<usize>,
}

impl Source {
    fn item(&self, index: usize) -> Self {
        let mut item = self.clone();
        item.items.push(index);
        item
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, document {}", shown(&self.file), self.document)?;
        for (depth, item) in self.items.iter().enumerate() {
            write!(f, "{}items[{item}]", if depth == 0 { ", " } else { "." })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    const WORLD: &str = "\
apiVersion: apis.kcp.io/v1alpha2
kind: APIBindingList
items:
- metadata: &meta
    name: beta
    annotations: {kcp.io/cluster: alpha}
  spec:
    reference:
      export: {path: root:gamma, name: delta}
- metadata:
    <<: *meta
    name: epsilon
---
apiVersion: v1
kind: ConfigMap
metadata: {name: zeta}
";

    fn from_stdin(bytes: &[u8]) -> Result<Found, ReadError> {
        read(&[STDIN.into()], &[], &mut Some(bytes))
    }

    #[test]
    fn objects_of_kinds_that_are_read_and_others() {
        let found = from_stdin(WORLD.as_bytes()).unwrap();
        let keys: Vec<_> = found.objects.iter().map(|(at, object)| format!("{at}: {}", object.key())).collect();
        let at = "standard input, document 1, items";
        assert_eq!(keys, [format!("{at}[0]: alpha|beta"), format!("{at}[1]: alpha|epsilon")]);
        assert_eq!(found.others, BTreeMap::from([("ConfigMap".to_owned(), 1)]));
    }

    #[test]
    fn no_document_at_all_is_an_error_but_an_empty_list_is_not() {
        assert!(matches!(from_stdin(b""), Err(ReadError::NothingOnStdin)));
        assert!(matches!(from_stdin(b"# nothing\n---\n"), Err(ReadError::NothingOnStdin)));
        assert!(from_stdin(b"apiVersion: v1\nkind: List\nitems: []\n").unwrap().objects.is_empty());
        let nothing = if cfg!(windows) { "NUL" } else { "/dev/null" };
        let error = read(&[nothing.into()], &[], &mut None::<&[u8]>).unwrap_err().to_string();
        assert_eq!(error, format!("no object in {nothing}: every document there is empty, or a comment"));
    }

    #[test]
    fn stdin_is_there_once_for_all_calls() {
        let mut stdin = Some(WORLD.as_bytes());
        assert_eq!(read(&["-".into()], &[], &mut stdin).unwrap().objects.len(), 2);
        assert!(matches!(read(&["-".into()], &[], &mut stdin), Err(ReadError::StdinTwice)));
    }

    fn value() -> impl Strategy<Value = Value> {
        let text = prop_oneof!["[ -~]{0,12}", "\\PC{0,8}", "(yes|no|null|~|1|0x1|1e3|<<|- a|a: b|#|\n|\t)"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(text.clone(), inner, 0..6).prop_map(Value::from_iter),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_much(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = from_stdin(&bytes);
        }

        #[test]
        fn no_text_is_too_much(text in "([\\[\\]{}:,#&*!|>'\"%@`?-]|[a-c1\n\t ]|<<|---\n|kind: List\n|items:|\u{feff}|\\PC){0,60}") {
            let _ = from_stdin(text.as_bytes());
        }

        #[test]
        fn a_world_can_be_cut_and_damaged_anywhere(end in 0..WORLD.len(), at in 0..WORLD.len(), byte: u8) {
            let mut bytes = WORLD.as_bytes().to_vec();
            bytes[at] = byte;
            bytes.truncate(end);
            let _ = from_stdin(&bytes);
        }

        /// The two languages say the same, and JSON is YAML.
        #[test]
        fn json_and_yaml_agree(field in value()) {
            let status = json!({"phase": "Bound", "field": field});
            let object = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {}, "status": status});
            let pretty = serde_json::to_string_pretty(&object).unwrap();
            let yaml = serde_saphyr::to_string(&object).unwrap();
            for text in [&pretty, &yaml, &format!("# YAML\n{pretty}")] {
                let found = from_stdin(text.as_bytes()).map_err(|wrong| TestCaseError::fail(format!("{wrong}: {text}")))?;
                let [(_, Object::ApiBinding(binding))] = &found.objects[..] else { panic!("{found:?}") };
                prop_assert_eq!(serde_json::to_value(&binding.status).unwrap(), status.clone(), "{}", text);
            }
        }
    }
}
