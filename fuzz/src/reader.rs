//! The command line's reader. It belongs to the program, not to the library, so its source is a module here.

use crate::cli::read::{STDIN, read};

/// Whatever it is given, it gives objects, or an error that says where.
pub fn reader(data: &[u8]) {
    let files = [STDIN.into()];
    match read(&files, &[], &mut Some(data)) {
        Ok(found) => {
            for (at, _) in &found.objects {
                assert!(!at.to_string().is_empty());
            }
            assert!(found.missing_pages().iter().all(|note| !note.is_empty()));
        }
        Err(error) => {
            let told = error.to_string();
            assert!(told.contains("standard input"), "an error that does not say where: {told}");
        }
    }
}
