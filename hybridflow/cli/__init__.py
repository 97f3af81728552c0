"""The command line: ``hybridflow bench | explain | profile | ir | doctor | cache``.  Nothing else imports it."""
