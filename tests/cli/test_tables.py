"""Tables on a narrow terminal."""

from wakeful.cli.output import NOTHING, Cell, fit

IDS = ("01a1e998-80ee-739c-a801-3536bf7a6731", "01a1e998-80ee-7d09-be29-dfb9e38926ed")
TABLE = [
    [Cell("id"), Cell("status"), Cell("title")],
    [Cell(IDS[0]), Cell(NOTHING), Cell("Write the milk down")],
    [Cell(IDS[1]), Cell(NOTHING), Cell("Read the notes and tell me")],
]


def texts(columns):
    return [[cell.text for cell in line] for line in fit(TABLE, columns)]


def test_a_table_that_fits_is_not_changed():
    assert fit(TABLE, 80) is TABLE


def test_columns_without_values_go_first_and_then_parts_of_ids_that_are_not_needed():
    assert texts(70)[1] == [IDS[0], "Write the milk down"]
    assert texts(60)[1:] == [
        ["01a1e998-80ee-73", "Write the milk down"],
        ["01a1e998-80ee-7d", "Read the notes and tell me"],
    ]


def test_the_last_column_is_cut_if_enough_of_it_is_left():
    assert texts(34)[2] == ["01a1e998-80ee-7d", "Read the notes …"]
    assert texts(24)[2] == ["01a1e998-80ee-7d", "Read the notes and tell me"]
