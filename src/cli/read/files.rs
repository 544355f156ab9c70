//! From a PATH to text.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{ReadError, STDIN, shown};

/// The files that a path stands for. A folder stands for what `*.json *.yaml *.yml` would
/// name in it, sorted, without the files that are given elsewhere, and not for what is in folders
/// inside: as with `kubectl -f`.
pub(super) fn expand(path: &Path, except: &[PathBuf]) -> Result<Vec<PathBuf>, ReadError> {
    let unreadable = |reason| unreadable(path, reason);
    if !fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        // A link that leads nowhere is kept, to be an error with a reason when it is read.
        if is_manifest(&entry.file_name()) && !entry.path().is_dir() {
            files.push(entry.path());
        }
    }
    if files.is_empty() {
        return Err(ReadError::EmptyFolder { path: path.display().to_string() });
    }
    let except: Vec<PathBuf> = except.iter().filter_map(|file| fs::canonicalize(file).ok()).collect();
    files.retain(|file| except.is_empty() || fs::canonicalize(file).map_or(true, |file| !except.contains(&file)));
    files.sort();
    Ok(files)
}

/// Hidden files are none: editors and macOS leave some with these endings.
fn is_manifest(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let endings = [".json", ".yaml", ".yml"];
    !name.starts_with('.') && endings.iter().any(|ending| name.ends_with(ending))
}

/// The text of a file.
pub(super) fn text(path: &Path) -> Result<String, ReadError> {
    let bytes = fs::read(path).map_err(|reason| unreadable(path, reason))?;
    decode(&path.to_string_lossy(), bytes)
}

/// The text of standard input, which is gone after that.
pub(super) fn stdin<R: Read>(stdin: &mut Option<R>) -> Result<String, ReadError> {
    let mut bytes = Vec::new();
    stdin
        .take()
        .ok_or(ReadError::StdinTwice)?
        .read_to_end(&mut bytes)
        .map_err(|reason| unreadable(Path::new(shown(STDIN)), reason))?;
    decode(STDIN, bytes)
}

fn decode(file: &str, bytes: Vec<u8>) -> Result<String, ReadError> {
    let mut text = String::from_utf8(bytes).map_err(|wrong| ReadError::NotUtf8 {
        file: shown(file).to_owned(),
        offset: wrong.utf8_error().valid_up_to(),
    })?;
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}

fn unreadable(path: &Path, reason: io::Error) -> ReadError {
    ReadError::Unreadable { path: path.display().to_string(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of its own for a test, gone at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("apibinding-{}-{test}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn write(&self, name: &str, text: &[u8]) -> PathBuf {
            fs::write(self.0.join(name), text).unwrap();
            self.0.join(name)
        }

        fn names(&self) -> Result<Vec<String>, ReadError> {
            let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
            Ok(expand(&self.0, &[self.0.join("../").join(self.0.file_name().unwrap()).join("z.yaml")])?
                .iter()
                .map(name)
                .collect())
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_folder_is_its_manifests_in_order() {
        let folder = Folder::new("order");
        for name in ["b.yaml", "a.yml", "c.json", ".hidden.yaml", "notes.txt", "yaml", "d.yaml.bak", "z.yaml"] {
            folder.write(name, b"");
        }
        fs::create_dir(folder.0.join("inner.yaml")).unwrap();
        assert_eq!(folder.names().unwrap(), ["a.yml", "b.yaml", "c.json"]);
    }

    #[test]
    fn a_folder_without_manifests_is_an_error() {
        let folder = Folder::new("empty");
        fs::create_dir(folder.0.join("inner")).unwrap();
        fs::write(folder.0.join("inner/a.yaml"), "").unwrap();
        let error = folder.names().unwrap_err().to_string();
        assert!(error.contains("has no file named *.json, *.yaml or *.yml"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_told_of_when_they_lead_nowhere() {
        use std::os::unix::fs::symlink;
        let folder = Folder::new("links");
        let file = folder.write("a.txt", b"text");
        symlink(&file, folder.0.join("b.yaml")).unwrap();
        symlink(folder.0.join("nothing"), folder.0.join("c.yaml")).unwrap();
        assert_eq!(folder.names().unwrap(), ["b.yaml", "c.yaml"]);
        assert_eq!(text(&folder.0.join("b.yaml")).unwrap(), "text");
        let error = text(&folder.0.join("c.yaml")).unwrap_err().to_string();
        assert!(error.contains("c.yaml cannot be read: No such file"), "{error}");
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let error = expand(Path::new("no/such/file.yaml"), &[]).unwrap_err().to_string();
        assert!(error.starts_with("no/such/file.yaml cannot be read: "), "{error}");
    }

    #[test]
    fn text_is_utf8_with_or_without_a_mark() {
        let folder = Folder::new("text");
        let read = |bytes: &[u8]| text(&folder.write("a.yaml", bytes)).map_err(|wrong| wrong.to_string());
        assert_eq!(read("é".as_bytes()).unwrap(), "é");
        assert_eq!(read("\u{feff}a".as_bytes()).unwrap(), "a");
        assert!(read(b"ab\xffc").unwrap_err().ends_with("a.yaml: byte 2 is not UTF-8: save the file as UTF-8"));
        // What some shells of Windows write.
        assert!(read(b"\xff\xfea\0").unwrap_err().contains("byte 0 is not UTF-8"));
    }

    #[test]
    fn stdin_is_read_once() {
        let mut input = Some(&b"a"[..]);
        assert_eq!(stdin(&mut input).unwrap(), "a");
        assert!(matches!(stdin(&mut input), Err(ReadError::StdinTwice)));
    }
}
