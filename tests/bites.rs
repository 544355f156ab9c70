//! Laws that bite: edits of the source, each of which breaks the program in a way that a law has to see.
//!
//! Without more ado this only makes sure that each edit still fits. `BITES=all`, or names with commas between,
//! applies each to a copy of the source and shows that the law fails there:
//!
//!     BITES=all cargo test --all-features --test bites
//!
//! The last line counts the edits.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

#[path = "bites/edits.rs"]
mod edits;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use edits::{Edit, Proof};

/// What of the project is copied.
const COPIED: &[&str] = &["Cargo.toml", "Cargo.lock", ".cargo", "clippy.toml", "src", "tests", "examples", "benches"];

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let asked = std::env::var("BITES").unwrap_or_default();
    let is_asked = |edit: &Edit| asked == "all" || asked.split(',').any(|name| name == edit.name);
    for name in asked.split(',').filter(|name| !["", "all"].contains(name)) {
        assert!(edits::ALL.iter().any(|edit| edit.name == name), "there is no edit {name}");
    }
    let copy = Copy::of(root, asked.is_empty());
    let mut failed = 0;
    for edit in edits::ALL {
        let verdict = match copy.as_ref().filter(|_| is_asked(edit)) {
            Some(copy) => copy.bites(edit),
            None => fits(root, edit).map(|_| "fits".to_owned()),
        };
        match verdict {
            Ok(what) => println!("{}: {}: {what}", edit.law, edit.name),
            Err(why) => {
                failed += 1;
                println!("{}: {}: FAILED: {why}", edit.law, edit.name);
            }
        }
    }
    println!("\n{} passed, {failed} failed", edits::ALL.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The text of the edited file, if the edit fits once.
fn fits(root: &Path, edit: &Edit) -> Result<String, String> {
    let path = root.join("src").join(edit.file);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("src/{}: {error}", edit.file))?;
    match text.matches(edit.find).count() {
        1 => Ok(text.replace(edit.find, edit.replace)),
        count => Err(format!("src/{} has {count} times: {}", edit.file, edit.find)),
    }
}

/// A copy of the source.
struct Copy<'a> {
    root: &'a Path,
    at: PathBuf,
}

impl<'a> Copy<'a> {
    fn of(root: &'a Path, is_unused: bool) -> Option<Self> {
        if is_unused {
            return None;
        }
        // Below the target folder, so that what is built there is built on, the next time.
        let at = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bites");
        for name in COPIED {
            let _ = std::fs::remove_dir_all(at.join(name));
            copy(&root.join(name), &at.join(name));
        }
        Some(Self { root, at })
    }

    /// Shows that the law of an edit fails where it is made.
    fn bites(&self, edit: &Edit) -> Result<String, String> {
        let edited = fits(self.root, edit)?;
        let file = Path::new("src").join(edit.file);
        std::fs::write(self.at.join(&file), edited).unwrap();
        let verdict = self.ask(edit);
        std::fs::copy(self.root.join(&file), self.at.join(&file)).unwrap();
        verdict
    }

    fn ask(&self, edit: &Edit) -> Result<String, String> {
        let (test, filter) = match edit.proof {
            Proof::Laws => ("laws", edit.law),
            Proof::Simulation => ("simulation", "laws_hold_whatever_goes_wrong"),
            Proof::Explore => ("explore", ""),
        };
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["test", "--offline", "--features", "proptest,sim", "--test", test, "--", filter])
            .current_dir(&self.at);
        cargo.env("CARGO_TARGET_DIR", self.at.join("target")).env("RUST_BACKTRACE", "0");
        cargo.env("CARGO_INCREMENTAL", "1").env("CARGO_PROFILE_DEV_DEBUG", "0").env_remove("BITES");
        let output = cargo.output().map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        let is_built = text.contains("Running");
        let is_seen = match edit.proof {
            Proof::Laws => text.contains(&format!("test {} ... FAILED", edit.law)),
            Proof::Simulation | Proof::Explore => text.contains(&format!("law `{}` is broken", edit.law)),
        };
        match (is_built, is_seen) {
            (false, _) => Err(format!("it does not build:\n{text}")),
            (true, false) => Err(format!("the law does not see it:\n{}", last(&text))),
            (true, true) => Ok(format!("seen by tests/{test}.rs")),
        }
    }
}

fn last(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else if from.exists() {
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(from, to).unwrap();
    }
}
