"""Names of the months in English, German, French, Spanish, Italian, Portuguese and Dutch, and their abbreviations."""

_NAMES = (
    "january jan januar jänner jän janvier janv enero ene gennaio gen janeiro januari",
    "february feb februar février févr fév fevrier febrero febbraio fevereiro fev februari",
    "march mar mär märz mrz maerz mars marzo março marco maart mrt",
    "april apr avril avr abril abr aprile",
    "may mai mayo maggio mag maio mei",
    "june jun juni juin junio giugno giu junho",
    "july jul juli juillet juil julio luglio lug julho",
    "august aug août aout agosto ago augustus",
    "september sep sept septembre septiembre settembre set setembro",
    "october oct oktober okt octobre octubre ottobre ott outubro out",
    "november nov novembre noviembre novembro",
    "december dec dezember dez décembre déc decembre diciembre dic dicembre dezembro",
)
MONTHS = {name: number for number, names in enumerate(_NAMES, start=1) for name in names.split()}
"""Number of the month, from 1, by its name in small letters."""
