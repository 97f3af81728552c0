"""The command line: ``hybridflow bench | explain | ir | doctor | cache``.  Nothing else imports it."""
