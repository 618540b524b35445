# Migrations of each schema in the order in which they are applied. Append, never edit or reorder.
set(EXPANSE_MIGRATIONS_CONTROL
  0001_initial
)
set(EXPANSE_MIGRATIONS_DATA
  0001_initial
  0002_list_indexes
)
set(EXPANSE_MIGRATIONS_INTELLIGENCE
  0001_analyse
  0002_diagnose
)
