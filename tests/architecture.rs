//! What `ARCHITECTURE.md` says of the rooms, read off the source.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Which room may know which others.
const ARROWS: &[(&str, &[&str])] = &[
    ("api", &[]),
    ("queue", &[]),
    ("snapshot", &["api"]),
    ("wakeup", &["api", "snapshot"]),
    ("effect", &["api", "queue"]),
    ("reconcile", &["api", "effect", "snapshot"]),
    ("pass", &["api", "effect", "reconcile", "snapshot"]),
    ("explain", &["api", "effect", "reconcile", "snapshot"]),
    ("strategies", &["api", "effect", "snapshot"]),
    ("shell", &["api", "effect", "pass", "queue", "reconcile", "snapshot", "wakeup"]),
    ("sim", &["api", "effect", "pass", "queue", "reconcile", "snapshot", "wakeup"]),
    ("front", &["api", "sim", "snapshot"]),
];

/// What no reader should have to scroll through.
const LINES: usize = 500;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// Every file of the library with its room and its text, tests and comments left out.
fn rooms() -> Vec<(PathBuf, String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    sources(&root, &mut found);
    let files = found.into_iter().map(|path| {
        let text = std::fs::read_to_string(&path).unwrap();
        let below = path.strip_prefix(&root).unwrap().to_path_buf();
        let room = below.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
        let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let code = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        (below, room, code)
    });
    let is_test = |path: &Path| path.ends_with("tests.rs") || path.starts_with("fixtures.rs");
    files.filter(|(path, _, _)| !is_test(path)).collect()
}

#[test]
fn arrows_run_one_way() {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    for (path, room, code) in rooms().iter().filter(|(_, room, _)| !["lib", "main", "cli"].contains(&room.as_str())) {
        let allowed = allowed.get(room.as_str()).unwrap_or_else(|| panic!("{room} is a room without arrows"));
        let known: BTreeSet<&str> = code
            .split("crate::")
            .skip(1)
            .map(|rest| rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap())
            .filter(|known| known != room && ARROWS.iter().any(|(room, _)| room == known))
            .collect();
        for known in known {
            assert!(allowed.contains(&known), "{} knows {known}, and {room} must not", path.display());
        }
    }
}

#[test]
fn the_command_line_knows_the_library_from_outside() {
    for (path, _, code) in rooms().iter().filter(|(_, room, _)| ["main", "cli"].contains(&room.as_str())) {
        for (room, _) in ARROWS {
            assert!(!code.contains(&format!("crate::{room}::")), "{} reaches into {room}", path.display());
        }
    }
}

#[test]
fn persistent_maps_stay_behind_the_snapshot() {
    for (path, room, code) in rooms() {
        let is_word =
            |at: &usize| !code.get(..*at).unwrap_or_default().ends_with(|letter: char| letter.is_alphanumeric());
        let known = code.match_indices("im::").map(|(at, _)| at).filter(is_word).count();
        assert!(known == 0 || room == "snapshot", "{} knows a map that is nobody's business", path.display());
    }
}

#[test]
fn files_are_short() {
    for (path, _, code) in rooms() {
        let lines = code.lines().count();
        assert!(lines <= LINES, "{} has {lines} lines of code, more than {LINES}", path.display());
    }
}

/// Every deviation has its row, and every test that a row names is there.
#[test]
fn deviations_name_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    sources(&root.join("src"), &mut found);
    let code: String = found.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let text = std::fs::read_to_string(root.join("DEVIATIONS.md")).unwrap();
    for number in 1..=26 {
        let row = text.lines().find(|line| line.starts_with(&format!("| D{number} |")));
        let row = row.unwrap_or_else(|| panic!("D{number} has no row"));
        let named: Vec<&str> = row.split('`').filter(|name| name.starts_with(&format!("d{number}_"))).collect();
        assert!(!named.is_empty(), "D{number} names no test");
        for name in named {
            assert!(code.contains(&format!("fn {name}(")), "D{number} names {name}, which is no test");
        }
    }
}
