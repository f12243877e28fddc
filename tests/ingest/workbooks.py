"""Workbooks by sheet: rows of numbers, texts, booleans, dates and None."""

import datetime as dt
import io
import zipfile
from xml.sax.saxutils import escape

import openpyxl
import xlwt

SPACES = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
)


def xlsx(**sheets):
    workbook, sink = openpyxl.Workbook(), io.BytesIO()
    workbook.remove(workbook.active)
    for title, rows in sheets.items():
        sheet = workbook.create_sheet(title)
        for row in rows:
            sheet.append(row)
    workbook.save(sink)
    return sink.getvalue()


def xls(**sheets):
    workbook, sink = xlwt.Workbook(), io.BytesIO()
    dated = xlwt.easyxf(num_format_str="YYYY-MM-DD HH:MM")
    for title, rows in sheets.items():
        sheet = workbook.add_sheet(title)
        for at, row in enumerate(rows):
            for number, value in enumerate(row):
                sheet.write(at, number, value, *([dated] if isinstance(value, dt.date) else []))
    workbook.save(sink)
    return sink.getvalue()


def ods(**sheets):
    def cell(value):
        if value is None:
            return "<table:table-cell/>"
        kind, attribute = {bool: ("boolean", "boolean-value"), str: ("string", "string-value")}.get(
            type(value), ("date", "date-value") if isinstance(value, dt.date) else ("float", "value")
        )
        text = value.isoformat() if isinstance(value, dt.date) else str(value)
        text = text.lower() if kind == "boolean" else text
        quoted = escape(text, {'"': "&quot;", "\n": "&#10;"})
        return f'<table:table-cell office:value-type="{kind}" office:{attribute}="{quoted}"/>'

    def table(title, rows):
        written = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
        return f'<table:table table:name="{title}">{written}</table:table>'

    body = "".join(table(title, rows) for title, rows in sheets.items())
    sheet = f"<office:body><office:spreadsheet>{body}</office:spreadsheet></office:body>"
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", f"<office:document-content {SPACES}>{sheet}</office:document-content>")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
    return sink.getvalue()
