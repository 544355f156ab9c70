//! Running the program, and files for it to read.

use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

/// What came of a run.
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Run {
    /// What was printed, as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err))
    }
}

/// The program, in the project's folder, whatever the colours of the one who tests.
pub fn command<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apibinding"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(variable);
    }
    command
}

pub fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    run_with_input(args, "")
}

pub fn run_with_input<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>, input: &str) -> Run {
    let piped = Stdio::piped;
    let mut child = command(args).stdin(piped()).stdout(piped()).stderr(piped()).spawn().unwrap();
    // All of it is read before anything is written; one that reads none is gone by now.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

/// A folder of its own for a test, gone at its end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(test: &str) -> Self {
        // Tests of one process run side by side, and two may want a folder of the same name.
        static FOLDERS: AtomicUsize = AtomicUsize::new(0);
        let (process, folder) = (std::process::id(), FOLDERS.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("apibinding-cli-{process}-{folder}-{test}"));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> String {
        self.0.to_str().unwrap().to_owned()
    }

    /// Writes a file; its path.
    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
