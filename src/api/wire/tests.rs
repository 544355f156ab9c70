use serde_json::json;

use super::*;

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Thing {
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    list: Vec<u8>,
    #[serde(flatten)]
    extra: Extra,
}

#[test]
fn null_is_the_empty_value() {
    let read = |json: Value| serde_json::from_value::<Thing>(json).unwrap();
    assert_eq!(read(json!({"list": null})), Thing::default());
    assert_eq!(read(json!({})), Thing::default());
    assert_eq!(read(json!({"list": [1]})).list, [1]);
    assert!(serde_json::from_value::<Thing>(json!({"list": "x"})).is_err());
}

#[test]
fn further_fields_are_carried_through_as_they_came() {
    let json = json!({"a": null, "b": {"c": [1.5, "x", {}]}, "list": [1], "z": 12_345_678_901_234_567_890_u64});
    let thing: Thing = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(serde_json::to_value(&thing).unwrap(), json);
    assert_eq!(thing.extra.get("a"), Some(&Value::Null));
    assert_eq!(thing.extra.get("list"), None);
    assert!(!thing.extra.is_empty());
    let none: Thing = serde_json::from_value(json!({})).unwrap();
    assert!(none.extra.is_empty());
    assert_eq!(serde_json::to_value(&none).unwrap(), json!({}));
}

#[test]
fn raw_json_is_passed_on_to_the_byte() {
    let text = r#"{"a": {"z":1.0,  "b":[ ]}}"#;
    let read: std::collections::BTreeMap<String, Json> = serde_json::from_str(text).unwrap();
    assert_eq!(read["a"].as_str(), r#"{"z":1.0,  "b":[ ]}"#);
    assert_eq!(serde_json::to_string(&read).unwrap(), r#"{"a":{"z":1.0,  "b":[ ]}}"#);
    assert_eq!(read["a"].to_value(), json!({"z": 1.0, "b": []}));
    assert_eq!(Json::of(&json!({"b": 1, "a": null})).as_str(), r#"{"a":null,"b":1}"#);
    assert!(Json::of(&7).read::<String>().is_err());
}

#[test]
fn a_wrong_constant_is_told_with_the_right_one() {
    let expect = |json: &str| expect(&mut serde_json::Deserializer::from_str(json), "Goose");
    for good in ["\"Goose\"", "\"\"", "null"] {
        assert!(expect(good).is_ok(), "{good}");
    }
    let problem = expect("\"Duck\"").unwrap_err().to_string();
    assert!(problem.contains("\"Duck\"") && problem.contains("`Goose`"), "{problem}");
}

#[test]
fn ordinary_numbers_are_carried_to_the_last_digit() {
    let json = r#"{"a":0.22931038504253454,"b":0.1,"c":9007199254740993,"d":1e-7}"#;
    let extra: Extra = serde_json::from_str(json).unwrap();
    assert_eq!(serde_json::to_string(&extra).unwrap(), json);
}

#[test]
fn bodies_are_equal_whatever_the_order_of_their_fields() {
    let json = |text: &str| serde_json::from_str::<Json>(text).unwrap();
    assert_eq!(json(r#"{"a": 1, "b": 2}"#), json(r#"{"b":2,"a":1}"#));
    assert_ne!(json(r#"{"a": 1}"#), json(r#"{"a": 2}"#));
}
