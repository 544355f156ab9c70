//! What can be wrong with an input, told so that a person can set it right.

use std::io;

use apibinding::api::{Kind, ObjectError};

use super::Source;

/// What can be wrong with an input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system refused.
    #[error("{path} cannot be read: {reason}{}", if reason.kind() == io::ErrorKind::NotFound {
        " (nor does it look like a binding, which is CLUSTER/NAME)"
    } else {
        ""
    })]
    Unreadable {
        /// Of the file or folder.
        path: String,
        /// What it said.
        #[source]
        reason: io::Error,
    },
    /// A folder without a file to read.
    #[error(
        "{path} has no file named *.json, *.yaml or *.yml: name the files, or the folder that has \
         them (folders inside of a folder are not searched)"
    )]
    EmptyFolder {
        /// Of the folder.
        path: String,
    },
    /// `-` a second time.
    #[error(
        "`-` is given twice, but standard input can be read only once: give it once, or save it \
         to a file and give that"
    )]
    StdinTwice,
    /// Standard input without a document.
    #[error(
        "standard input holds no object: see whether the command before the pipe failed (an \
         empty List would have been fine)"
    )]
    NothingOnStdin,
    /// Files without a document.
    #[error("no object in {paths}: every document there is empty, or a comment")]
    Nothing {
        /// As they were given.
        paths: String,
    },
    /// Bytes that are no text.
    #[error("{file}: byte {offset} is not UTF-8: save the file as UTF-8")]
    NotUtf8 {
        /// Its name.
        file: String,
        /// Of the first such byte, from 0.
        offset: usize,
    },
    /// Text that is neither JSON nor YAML.
    #[error("{file}, line {line}, column {column}: not valid {language}: {problem}")]
    Syntax {
        /// Its name.
        file: String,
        /// What it was read as.
        language: &'static str,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What was found.
        problem: String,
    },
    /// A list or a scalar where an object should be.
    #[error(
        "{at}: this is no object: give each object as a document of its own, or all of them as the `items` of a \
         `kind: List`"
    )]
    NotAnObject {
        /// Where.
        at: Box<Source>,
    },
    /// An object that does not say what it is.
    #[error(
        "{at}: the object has no `{missing}`: add it (only the items of a list that names their kind, like an \
         APIBindingList, can do without)"
    )]
    Untyped {
        /// Where.
        at: Box<Source>,
        /// `apiVersion` or `kind`.
        missing: &'static str,
    },
    /// What every object or list has, but of another type.
    #[error("{at}: {}{problem}", if field == "." { String::new() } else { format!("{field}: ") })]
    Head {
        /// Where.
        at: Box<Source>,
        /// Its path.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Lists in lists in lists.
    #[error("{at}: lists are nested too deep here: take out some")]
    NestedLists {
        /// Where.
        at: Box<Source>,
    },
    /// A kind of kcp in a version that is not read here.
    #[error(
        "{at}: this is an {kind} of {found}, but only {wanted} is read: get it as that, with `kubectl get {resource} -o \
         yaml`, or, in a file written by hand, write apiVersion: {wanted}",
        wanted = kind.api_version()
    )]
    Version {
        /// Where.
        at: Box<Source>,
        /// What it is.
        kind: Kind,
        /// What `apiVersion` is.
        found: String,
        /// How kubectl calls it.
        resource: String,
    },
    /// A server's answer where its objects should be.
    #[error(
        "{at}: this is no object, but a server's Status{}: {message}: ask the server again, as `apibinding --help` shows \
         (curl without -f saves such an answer as if it were a list)",
        code.map(|code| format!(" {code}")).unwrap_or_default()
    )]
    Status {
        /// Where.
        at: Box<Source>,
        /// The status of HTTP.
        code: Option<i64>,
        /// What the server said.
        message: String,
    },
    /// An object with a field that does not fit.
    #[error("{at}: {reason}{}", cure(reason))]
    Object {
        /// Where.
        at: Box<Source>,
        /// Which object and field, and what is wrong with it.
        reason: ObjectError,
    },
}

/// The cure for what people run into most: a name like `no` or `12` that YAML takes for something
/// else.
fn cure(reason: &ObjectError) -> &'static str {
    let problem = reason.to_string();
    let is_unquoted = ["boolean", "integer", "floating point"]
        .iter()
        .any(|found| problem.contains(&format!(": invalid type: {found} `")));
    if is_unquoted && problem.ends_with(", expected a string") { ": put it in quotes" } else { "" }
}

/// A place in a text, from 1, and what is wrong there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) problem: String,
}

/// serde_json has the place at the end of its text too.
impl From<&serde_json::Error> for Fault {
    fn from(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let place = format!(" at line {line} column {column}");
        let problem = text.strip_suffix(&place).unwrap_or(&text);
        // Behind a line break it counts from 0.
        let column = column.max(1);
        match error.is_eof() {
            true => Fault { line, column, problem: format!("it is cut off ({problem})") },
            false => Fault { line, column, problem: problem.to_owned() },
        }
    }
}

impl From<&serde_saphyr::Error> for Fault {
    fn from(error: &serde_saphyr::Error) -> Self {
        let place = error.location().unwrap_or(serde_saphyr::Location::UNKNOWN);
        let at = |position: u64| usize::try_from(position).unwrap_or(usize::MAX);
        let text = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
        let problem = text.split(" at line ").next().unwrap_or(&text);
        Fault { line: at(place.line()), column: at(place.column()), problem: problem.to_owned() }
    }
}
