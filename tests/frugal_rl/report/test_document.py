"""One report in two forms: what each block becomes, and that strangers' words stay words."""

import pytest

from frugal_rl.report.comparison import share, show, with_spread
from frugal_rl.report.document import (
    CommandBlock,
    Document,
    Heading,
    PictureBlock,
    TableBlock,
    markdown_table,
)

TABLE = TableBlock(("name", "bytes"), [("a", "1,024"), ("b", "-"), ("c", "+5 %")])


@pytest.fixture
def document(tmp_path):
    picture = tmp_path / "pictures" / "curve.png"
    picture.parent.mkdir()
    picture.write_bytes(b"\x89PNG")
    made = Document("Runs")
    made.add("Two runs.", Heading("nclone"), CommandBlock(["a 1", "b 2"]))
    made.add(TABLE, PictureBlock(picture, "A curve."))
    return made


def test_markdown_has_a_line_per_block(document, tmp_path):
    assert document.markdown(tmp_path) == (
        "# Runs\n\nTwo runs.\n\n## nclone\n\n```bash\na 1\nb 2\n```\n\n"
        "| name | bytes |\n| --- | --- |\n| a | 1,024 |\n| b | - |\n| c | +5 % |\n\n"
        "![A curve.](pictures/curve.png)\n\nA curve.\n"
    )


def test_a_page_holds_its_pictures(document):
    page = document.page()
    assert page.startswith("<!doctype html>")
    assert '<img alt="A curve." src="data:image/png;base64,iVBORw==">' in page
    assert "<figcaption>A curve.</figcaption>" in page
    assert "<h1>Runs</h1>" in page
    assert "<h2>nclone</h2>" in page
    assert "<pre>a 1\nb 2</pre>" in page
    assert "<p>Two runs.</p>" in page


def test_numbers_stand_to_the_right():
    document = Document("x")
    document.add(TABLE)
    page = document.page()
    assert '<td class="number">1,024</td>' in page
    assert '<td class="number">-</td>' in page
    assert '<td class="number">+5 %</td>' in page
    assert "<td>a</td>" in page


@pytest.mark.parametrize("words", ["<script>alert(1)</script>", 'a"b', "a & b"])
def test_words_of_strangers_are_no_part_of_a_page(words, tmp_path):
    picture = tmp_path / "a.png"
    picture.write_bytes(b"x")
    document = Document(words)
    document.add(words, Heading(words), CommandBlock([words]), TableBlock((words,), [(words,)]))
    document.add(PictureBlock(picture, words))
    assert words not in document.page()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("[a](http://b)", r"\[a\](http://b)"),
        ("`code`", r"\`code\`"),
        ("<img>", r"\<img\>"),
        ("a\\b", r"a\\b"),
    ],
)
def test_words_of_strangers_are_no_markdown(words, found, tmp_path):
    document = Document(words)
    document.add(words, Heading(words))
    assert document.markdown(tmp_path) == f"# {found}\n\n{found}\n\n## {found}\n"


def test_a_bar_in_a_cell_opens_no_column():
    table = markdown_table(TableBlock(("a|b",), [("c|d",)]))
    assert table == "| a\\|b |\n| --- |\n| c\\|d |"


def test_forms_are_written_beside_each_other(document, tmp_path):
    paths = document.write(tmp_path, "report", ("html", "md"))
    assert [path.name for path in paths] == ["report.html", "report.md"]
    assert paths[0].read_text() == document.page()
    assert paths[1].read_text() == document.markdown(tmp_path)
    assert document.write(tmp_path, "other", ("md",)) == [tmp_path / "other.md"]


@pytest.mark.parametrize(
    ("value", "spread", "form", "words"),
    [
        (None, None, ".1%", "-"),
        (0.5, None, ".1%", "50.0%"),
        (0.5, 0.25, ".1%", "50.0% ± 25.0%"),
        (1234.5, 0.0, ",.0f", "1,234 ± 0"),
    ],
)
def test_a_mean_is_told_with_its_spread_where_there_is_one(value, spread, form, words):
    assert with_spread(value, spread, form) == words
    assert show(value, form) == words.partition(" ±")[0]


@pytest.mark.parametrize(
    ("value", "spread", "words"),
    [
        (None, None, "-"),
        (0.5, None, "50.0%"),
        (0.5, 0.25, "50.0% (25% to 75%)"),
        (0.688, 3.972, "68.8% (0% to 100%)"),
    ],
)
def test_a_share_stays_between_none_and_all(value, spread, words):
    assert share(value, spread) == words


def test_a_chart_can_be_read_on_a_phone_and_a_film_keeps_its_size(tmp_path):
    picture = tmp_path / "a.png"
    picture.write_bytes(b"x")
    page = Document("x", [PictureBlock(picture, "c", "eval/return"), PictureBlock(picture, "f")])
    assert page.page().count('<img class="chart"') == 1
