//! Draws `benches/curves.csv` as `benches/curves.svg`.
//!
//!     cargo run --example plot --features latest,sim

#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // a program has files

use std::collections::BTreeMap;
use std::error::Error;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::prelude::*;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches");
/// What was measured of the original controller: bindings in the workspace, microseconds a pass.
const ORIGINAL: [(f64, f64); 4] = [(1.0, 44.0), (10.0, 150.0), (100.0, 1_300.0), (1_000.0, 12_000.0)];
const TITLE: (&str, i32) = ("sans-serif", 17);
const TEXT: (&str, i32) = ("sans-serif", 13);

/// Colours that people tell apart who see few of them.
const BLUE: RGBColor = RGBColor(0, 114, 178);
const RED: RGBColor = RGBColor(213, 94, 0);
const GREEN: RGBColor = RGBColor(0, 158, 115);
const PURPLE: RGBColor = RGBColor(204, 121, 167);
const BROWN: RGBColor = RGBColor(153, 102, 0);

/// Points of a curve, x by y, in microseconds.
type Points = Vec<(f64, f64)>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

struct Chart {
    title: &'static str,
    x: (&'static str, Range<f64>),
    y: (&'static str, Range<f64>),
    curves: Vec<(&'static str, RGBColor, Points)>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut measured = read(&std::fs::read_to_string(format!("{FOLDER}/curves.csv"))?)?;
    let mut take = |name: &str| measured.remove(name).ok_or_else(|| format!("curves.csv has no {name}"));
    let charts = [
        Chart {
            title: "A pass with nothing to do, by workspace",
            x: ("bindings in the workspace, of 100,000", 1.0..1_000.0),
            y: ("µs a pass", 0.1..100_000.0),
            curves: vec![
                ("kcp's own controller", RED, ORIGINAL.to_vec()),
                ("this one", BLUE, take("steady by neighbours")?),
                ("this one, the same key again", GREEN, take("steady again by neighbours")?),
            ],
        },
        Chart {
            title: "By all bindings, one in each workspace",
            x: ("bindings", 1_000.0..1_000_000.0),
            y: ("µs", 0.1..100.0),
            curves: vec![
                ("a pass with nothing to do", BLUE, take("steady by fleet")?),
                ("the same key again", GREEN, take("steady again by fleet")?),
                ("a binding taken in", RED, take("binding applied by fleet")?),
                ("a LogicalCluster taken in", PURPLE, take("home applied by fleet")?),
                ("an export taken in", BROWN, take("export applied by fleet")?),
            ],
        },
        Chart {
            title: "Taking in, by workspace",
            x: ("bindings in the workspace", 1.0..1_000.0),
            y: ("µs", 0.1..100_000.0),
            curves: vec![
                ("a binding", BLUE, take("binding applied by neighbours")?),
                ("a LogicalCluster (3 locks a binding)", PURPLE, take("home applied by neighbours")?),
            ],
        },
        Chart {
            title: "Waking, for each key",
            x: ("bindings of the export", 10.0..10_000.0),
            y: ("µs a key", 0.01..100.0),
            curves: vec![
                ("by the export", BLUE, take("woken by an export")?),
                ("by one of its bound CRDs", RED, take("woken by a crd")?),
            ],
        },
    ];
    let path = format!("{FOLDER}/curves.svg");
    let root = SVGBackend::new(&path, (1000, 800)).into_drawing_area();
    // Not transparent: the text would be dark on dark.
    root.fill(&WHITE)?;
    for (chart, area) in charts.iter().zip(root.split_evenly((2, 2))) {
        draw(chart, &area)?;
    }
    root.present()?;
    println!("{path}");
    Ok(())
}

fn read(csv: &str) -> Result<BTreeMap<String, Points>, Box<dyn Error>> {
    let mut curves: BTreeMap<String, Points> = BTreeMap::new();
    for line in csv.lines().skip(1) {
        let mut fields = line.split(',');
        let (Some(curve), Some(at), Some(time)) = (fields.next(), fields.next(), fields.next()) else {
            return Err(format!("not a point: {line}").into());
        };
        curves.entry(curve.to_owned()).or_default().push((at.parse()?, time.parse::<f64>()? / 1_000.0));
    }
    Ok(curves)
}

fn draw(chart: &Chart, area: &Area) -> Result<(), Box<dyn Error>> {
    let Chart { title, x: (x_title, x), y: (y_title, y), curves } = chart;
    let mut context = ChartBuilder::on(area)
        .caption(*title, TITLE)
        .margin(12)
        .margin_right(40)
        .x_label_area_size(44)
        .y_label_area_size(62)
        .build_cartesian_2d(x.clone().log_scale(), y.clone().log_scale())?;
    context
        .configure_mesh()
        .bold_line_style(BLACK.mix(0.15))
        .light_line_style(TRANSPARENT)
        .label_style(TEXT)
        .axis_desc_style(TEXT)
        .x_desc(*x_title)
        .y_desc(*y_title)
        .x_label_formatter(&|x| grouped(*x))
        .y_label_formatter(&|y| grouped(*y))
        .draw()?;
    for (name, colour, points) in curves {
        context
            .draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)).point_size(3))?
            .label(*name)
            .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    context
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .label_font(TEXT)
        .draw()?;
    Ok(())
}

/// As people write it: `1,000`, or `0.1`.
fn grouped(number: f64) -> String {
    if number < 1_000.0 {
        return format!("{number}");
    }
    let thousands = (number / 1_000.0).floor();
    format!("{},{:03}", grouped(thousands), number - thousands * 1_000.0)
}
